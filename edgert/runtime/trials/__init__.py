"""A new model beside the one that runs, on the same frames, until it is known to be as good."""
