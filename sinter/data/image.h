#pragma once
// Pictures as tensors: u8 of the shape [channels, height, width]. Files come from anywhere: what is wrong with one is
// an Error that names it.
#include <string>
#include <string_view>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace data {

// The channels of a tensor. Gray is 0.299 R + 0.587 G + 0.114 B; what has no transparency is opaque; transparency that
// is not wanted is dropped.
enum class ImageMode : uint8_t { kUnchanged, kGray, kRGB, kRGBA };

// A PNG or JPEG file, told apart by its first bytes. PNG: gray, palette and colour of any depth, with transparency,
// interlaced; 16 bits are rounded to 8. JPEG: gray, colour and CMYK, baseline and progressive. Gamma, profiles and the
// orientation that a camera has noted are not looked at.
Tensor read_image(const std::string& path, ImageMode mode = ImageMode::kUnchanged);
// The same from memory; `name` stands for the file in errors.
Tensor decode_image(std::string_view bytes, ImageMode mode = ImageMode::kUnchanged, const std::string& name = "image");

// u8[height, width], or [channels, height, width] with gray, gray and transparency, RGB or RGBA. Appears whole or not
// at all.
void write_png(const std::string& path, const Tensor& image);

}  // namespace data
}  // namespace SINTER_API
