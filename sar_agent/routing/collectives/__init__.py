"""Routes for collectives: rings apart by edge colouring, the others by moves that break no ring."""
