"""What a site does not run: assessments, simulations, the tables of the papers, test daemons."""
