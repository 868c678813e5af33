"""Inference runtimes behind one narrow interface; each module alone imports its vendor's library.

    base.py         the interface: Backend, Session, CompileRequest, DeviceReport
    registry.py     names -> backends, what a device in the file means, signatures for the plan
    binding.py      what all sessions need: does an array fit, where does it lie
    lanes.py        the threads of runtimes whose call blocks
    placement.py    how much of a model a device took
    byte_session.py bytes converted before a session whose device cannot
    options.py      options of a backend's own, unknown ones refused
    openvino.py     OpenVINO: CPU, GPU, NPU; ONNX, IR, TensorFlow graphs and TFLite
    opcount.py      operators, parameters and MACs of a model that OpenVINO has read
    onnxruntime.py  ONNX Runtime: any provider, never a silent one
    tflite.py       TFLite: the CPU, and delegates by name or library, with proof of what they took
    emulated.py     a stand-in for an accelerator: known latency, replayed outputs, faults
    survey.py       what each runtime really has here, asked and tried in children
    trial_model.py  the small model that it tries accelerators with

Only ``base``, ``registry``, ``binding``, ``options`` and ``survey`` may be imported where no
vendor's library must be loaded.
"""
