"""Which attempts answer what must be known of a system."""
