"""The reference transformer, whole or a part of it, as each axis divides it over ranks."""
