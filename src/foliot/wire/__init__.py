"""JSON shapes shared by the API and the SDK."""
