// Saving a model as a safetensors file, and loading it: whole, in part, and with a clear error where it does not fit.
#include <sinter/sinter.h>

#include <filesystem>
#include <iostream>

using namespace sinter;

nn::Sequential make_model(int64_t width) {
  return nn::Sequential(nn::Linear(8, width), nn::GELU(), nn::LayerNorm(width), nn::Linear(width, 3));
}

int main() {
  std::string path = (std::filesystem::temp_directory_path() / "sinter_example.safetensors").string();
  nn::Sequential model = make_model(16);
  model->save(path);
  for (auto& [name, value] : load_safetensors(path))
    std::cout << name << "  " << to_string(value.dtype()) << to_string(value.sizes()) << "\n";

  // Another model of the same make computes the same once it has the file.
  nn::Sequential copy = make_model(16);
  copy->load(path);
  Tensor x = randn({4, 8});
  bool same = all(model(x) == copy(x)).item<bool>();
  std::cout << (same ? "the copy agrees\n" : "the copy differs\n");

  // In half precision: the parameters stay the same objects, their contents change.
  copy->to(kBFloat16);
  Tensor error = (copy(x.to(kBFloat16)).to(kFloat32) - model(x)).abs().amax();
  std::cout << "largest difference in bf16: " << error.item<double>() << "\n";

  // What does not fit is listed, and nothing is written.
  bool refused = false;
  try {
    make_model(32)->load(path);
  } catch (const Error& e) {
    refused = true;
    std::cout << "as expected: " << e.what() << "\n";
  }
  std::filesystem::remove(path);
  return same && refused ? 0 : 1;
}
