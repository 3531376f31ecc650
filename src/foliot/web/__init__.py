"""The dashboard: built from `ui/` by the wheel, served by the API."""
