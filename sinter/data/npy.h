#pragma once
// NumPy's files: .npy, one array, and .npz, a ZIP archive of named ones. Files come from anywhere: what is wrong with
// one is an Error that names it. Unsigned integers of 16 bits become i32, of 32 and 64 bits i64, an Error where a value
// does not fit. Arrays of objects, texts, complex numbers and records are refused.
#include <string>

#include "sinter/base/api.h"
#include "sinter/io/safetensors.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace data {

// A view of the mapped file where its elements lie as a tensor's do, else a copy. Writing to it does not change the
// file.
Tensor load_npy(const std::string& path);
// Writes a file that appears whole or not at all. NumPy has no bf16: convert it first.
void save_npy(const std::string& path, const Tensor& tensor);

// In the order of the archive, by the names that numpy.savez was given.
NamedTensors load_npz(const std::string& path);
// With `compressed` as numpy.savez_compressed does it. An array of 2 GiB or an archive of 4 GiB is an Error.
void save_npz(const std::string& path, const NamedTensors& tensors, bool compressed = false);

}  // namespace data
}  // namespace SINTER_API
