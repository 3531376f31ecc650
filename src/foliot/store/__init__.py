"""The only room that speaks SQL: what is true in the database, and how it changes."""
