"""`Tanh` of a subnormal number is off by 61 representable numbers; the result is the number itself."""

import numpy as np
import onnxruntime
from onnx import parser

HEADER = '<ir_version: 10, opset_import: ["" : 22]>'
MODEL = HEADER + "op (float[] a) => (float[] y) { y = Tanh(a) }"
session = onnxruntime.InferenceSession(parser.parse_model(MODEL).SerializeToString())
x = np.array([8.668152e-41], np.float32)
assert session.run(None, {"a": x})[0] == x
