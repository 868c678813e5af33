"""What to do about a model, in the same words whichever runtime refuses it."""

FETCH_AGAIN = "Fetch or convert it again"
LOOK_AT_INPUTS = "Give sizes that fit: `edgert models inspect` shows its inputs"
CONVERT_TENSOR = "Convert the model so that it has numbers of a plain type there"
