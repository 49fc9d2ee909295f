"""`Where` gives 0.0 for -0.0."""

import numpy as np
import onnxruntime
from onnx import parser

HEADER = '<ir_version: 10, opset_import: ["" : 22]>'
MODEL = HEADER + "op (bool[] c, float[] a, float[] b) => (float[] y) { y = Where(c, a, b) }"
session = onnxruntime.InferenceSession(parser.parse_model(MODEL).SerializeToString())
x, y = np.array([-0.0], np.float32), np.array([1.0], np.float32)
assert np.signbit(session.run(None, {"c": np.array([True]), "a": x, "b": y})[0])
