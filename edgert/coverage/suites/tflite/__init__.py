"""Single-operator TFLite models that edgert makes itself, with what each must compute.

    variant.py       one operator in one variant, as the tables below have it
    filters.py       convolutions, matrix products
    images.py        pools, resizing
    elementwise.py   operators of one or two tensors, element by element
    activations.py   activations, normalisation
    layout.py        other shapes and orders of the same elements
    cuts.py          cuts, borders, blocks, copies
    choosing.py      gathering, comparing, selecting
    reductions.py    sums, means, extremes, their places
    recurrent.py     cells that keep a state
    types.py         from one element type to another
    windows.py       numpy's side of filters and pools
    put.py           a variant in one element type: levels, scales, what is expected
    file.py          the file itself
    cases.py         all of them in a folder, with an index

What is expected comes from formulas in numpy, in f64, written here from the definition of each
operator: no runtime's kernels are taken for the truth, TFLite's own are under test, too.
"""
