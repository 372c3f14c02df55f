"""Which attempts answer what is asked of a system."""
