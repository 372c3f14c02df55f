"""Services, used as users use them: one module a kind, whose steps are timed and explained."""
