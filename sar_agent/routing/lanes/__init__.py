"""Virtual lanes: which packets travel in which, so that no lane's channels wait in a circle."""
