"""The plan of a job as text, document, picture and explanation."""
