"""Real services in namespaces of their own: one module a service."""
