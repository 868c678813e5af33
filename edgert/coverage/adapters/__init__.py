"""Every way to ask a device: ``adapter:DEVICE`` names one, as in ``onnxruntime:CPU``."""
