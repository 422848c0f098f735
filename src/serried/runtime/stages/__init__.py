"""Pipeline stages of any model: where it is cut, what each stage holds, whether they add up."""
