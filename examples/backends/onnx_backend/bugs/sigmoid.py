"""`Sigmoid` is 0 from -79 on; its results are normal numbers down to -87."""

import numpy as np
import onnxruntime
from onnx import parser

HEADER = '<ir_version: 10, opset_import: ["" : 22]>'
MODEL = HEADER + "op (float[] a) => (float[] y) { y = Sigmoid(a) }"
session = onnxruntime.InferenceSession(parser.parse_model(MODEL).SerializeToString())
assert session.run(None, {"a": np.array([-79.13959503], np.float32)})[0] > 4e-35
