"""The processes: a supervisor, its zygote, and the workers that run the stages."""
