"""Signals: a short-time Fourier transform and its inverse, filters, autocorrelation and resampling."""

from __future__ import annotations

import tensorken as tk

tk.set_printoptions(precision=4, suppress=True)

RATE, WINDOW, HOP = 256, 64, 16
t = tk.arange(512, dtype="float64") / RATE
sweep = tk.sin(2 * tk.pi * (20 * t + 15 * t**2))  # its frequency rises from 20 to 80 hertz in two seconds

window = 0.5 - 0.5 * tk.cos(2 * tk.pi * tk.arange(WINDOW, dtype="float64") / WINDOW)
starts = tk.arange(0, len(sweep) - WINDOW + 1, HOP)
frames = sweep[starts[:, None] + tk.arange(WINDOW)]
stft = tk.fft.rfft(frames * window, axis=-1)
frequencies = tk.fft.rfftfreq(WINDOW, 1 / RATE)
print("frames and frequencies:", stft.shape, "loudest frequency of each fourth frame:")
print(frequencies[tk.argmax(tk.abs(stft), axis=1)][::4])

# The inverse: overlapping frames are added, and divided by the sum of the windows.
pieces = tk.fft.irfft(stft, WINDOW) * window
restored, weight = tk.zeros_like(sweep), tk.zeros_like(sweep)
for piece, start in zip(pieces, starts.tolist(), strict=True):
    around = (start, len(sweep) - WINDOW - start)
    restored, weight = restored + tk.pad(piece, around), weight + tk.pad(window**2, around)
restored = restored / tk.maximum(weight, 1e-3)
print("restored within 1e-9:", tk.allclose(restored[WINDOW:-WINDOW], sweep[WINDOW:-WINDOW], atol=1e-9))

noisy = tk.sin(2 * tk.pi * 3 * t) + 0.5 * tk.sign(tk.sin(2 * tk.pi * 50 * t + 0.1))
smooth = tk.convolve(noisy, tk.ones(16, dtype="float64") / 16, mode="same")
print("smoothed:", smooth[100:400:60], f"roughness {tk.diff(noisy).std():.4f} -> {tk.diff(smooth).std():.4f}")
spectrum = tk.fft.rfft(noisy)
spectrum = tk.where(tk.fft.rfftfreq(512, 1 / RATE) > 10, 0, spectrum)
print("low-pass by fft:", tk.fft.irfft(spectrum)[100:400:60])

centered = noisy - noisy.mean()
power = tk.abs(tk.fft.fft(centered, 1024)) ** 2
autocorrelation = tk.fft.ifft(power).real[:512]
direct = tk.correlate(centered, centered, mode="full")[511:]
print(
    "autocorrelation:", (autocorrelation / autocorrelation[0])[:200:40], tk.allclose(autocorrelation, direct)
)
fine = tk.interp(tk.array([0.1, 0.2, 0.3], dtype="float64"), t, tk.unwrap(2 * tk.pi * 20 * t))
print("interpolated:", fine, "slope:", tk.gradient(t**2, t)[1:4], "area:", tk.trapezoid(t**2, t).round(6))


def draw(figure) -> None:
    """The short-time Fourier transform of a tone that rises from 20 to 80 hertz in two seconds."""
    axes = figure.subplots()
    axes.imshow(tk.abs(stft).T, origin="lower", aspect="auto", extent=(0, 2, 0, RATE / 2))
    axes.set(xlabel="seconds", ylabel="hertz")
