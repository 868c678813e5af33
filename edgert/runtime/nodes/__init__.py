"""What drives a stage inside its worker: tokens and slots around the stage's ``process``."""
