"""`atan2` of two subnormal numbers is NaN; of 8 pairs it is another angle, where both are flushed to zeros or not."""

import tensorflow as tf

x, y = tf.constant([1e-45] * 8), tf.constant([3e-43] * 8)
assert abs(tf.math.atan2(x[:1], y[:1]).numpy()[0]) < 0.01
assert (abs(tf.math.atan2(x, y).numpy()) < 0.01).all()
