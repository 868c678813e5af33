"""What a device is asked: the ONNX node cases, whole models, single TFLite operators."""
