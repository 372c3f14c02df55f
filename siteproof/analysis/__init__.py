"""Pure functions over samples and sites: no file, clock, job or print."""
