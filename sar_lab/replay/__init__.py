"""A job history through engines: what each would have made of every moment of it."""
