"""Images of bytes: a blur, an equalised histogram, and an approximation of low rank."""

from __future__ import annotations

import tensorken as tk

# A dark slope with a bright disk.
y, x = tk.meshgrid(tk.arange(12), tk.arange(16), indexing="ij")
image = tk.where((x - 9) ** 2 + (y - 5) ** 2 < 12, 200 + x, 4 * x + 3 * y).astype("uint8")


def blurred(image: tk.Tensor) -> tk.Tensor:
    """The mean of each pixel and its eight neighbours, where the border is repeated."""
    height, width = image.shape
    padded = tk.pad(image.astype("uint16"), 1, mode="edge")
    return (sum(padded[i : i + height, j : j + width] for i in range(3) for j in range(3)) // 9).astype(
        "uint8"
    )


def equalised(image: tk.Tensor) -> tk.Tensor:
    """The image with its levels spread, so that the histogram is as flat as possible."""
    cdf = tk.cumsum(tk.bincount(image.ravel(), minlength=256))
    lowest = cdf[cdf > 0].min()
    levels = tk.round(255 * (cdf - lowest) / (image.size - lowest)).clip(0, 255).astype("uint8")
    return levels[image]


def low_rank(image: tk.Tensor, rank: int) -> tk.Tensor:
    """The best approximation of the image by a matrix of low rank."""
    u, s, vh = tk.linalg.svd(image.astype("float64"), full_matrices=False)
    return (u[:, :rank] * s[:rank]) @ vh[:rank]


print("rows 3 to 6 of the image:")
print(image[3:7])
print("blurred:")
print(blurred(image)[3:7])
print("equalised:")
print(equalised(image)[3:7])
print("levels before:", image.min(), image.max(), "after:", equalised(image).min(), equalised(image).max())
print("bytes wrap:", (image + 100)[0, -4:])
for rank in (1, 3, 6):
    error = tk.linalg.norm(image - low_rank(image, rank)) / tk.linalg.norm(image.astype("float64"))
    print(f"rank {rank}: relative error {error:.4f}")


def draw(figure) -> None:
    """A bright disk on a dark slope: the image, blurred, with an equalised histogram, and of rank 3."""
    pictures = {
        "image": image,
        "blurred": blurred(image),
        "equalised": equalised(image),
        "rank 3": low_rank(image, 3),
    }
    for axes, (name, picture) in zip(figure.subplots(2, 2).flat, pictures.items(), strict=True):
        axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
        axes.set_title(name)
        axes.set_axis_off()
