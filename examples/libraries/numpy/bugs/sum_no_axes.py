"""A sum over no axes is the array itself, but -0.0 becomes 0.0."""

import numpy as np

assert np.signbit(np.sum(np.array([-0.0]), axis=())).all()
