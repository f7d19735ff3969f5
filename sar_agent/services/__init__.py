"""Services: parts that a site may do without. The core finds them by entry points."""
