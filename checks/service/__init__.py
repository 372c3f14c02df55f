"""Services that users meet."""
