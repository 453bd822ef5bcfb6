// Every name of PyTorch's Core ATen set is an op, a function over ops, or refused with a reason.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>

#include "sinter/base/error.h"
#include "sinter/graph/graph.h"
#include "sinter/sinter.h"

namespace sinter {
namespace {

// Names without an op of their own, each by the function that stands for it.
const std::map<std::string, std::function<Tensor()>>& functions() {
  static auto image = [] { return rand({1, 2, 6, 6}); };
  static auto volume = [] { return rand({1, 2, 4, 4, 4}); };
  static const std::map<std::string, std::function<Tensor()>> table = {
      {"_adaptive_avg_pool2d", [] { return adaptive_avg_pool2d(image(), {2, 3}); }},
      {"_adaptive_avg_pool2d_backward", [] { return _adaptive_avg_pool2d_backward(rand({1, 2, 2, 3}), image()); }},
      {"_adaptive_avg_pool3d", [] { return adaptive_avg_pool3d(volume(), {2, 2, 2}); }},
      {"_cdist_forward", [] { return cdist(rand({2, 3}), rand({4, 3}), 1.5); }},
      {"_local_scalar_dense", [] { return scalar_tensor(ones({}).item()); }},
      {"_log_softmax", [] { return log_softmax(rand({2, 3}), 1); }},
      {"_native_batch_norm_legit", [] { return batch_norm(image(), zeros({2}), ones({2}), ones({2}), zeros({2}), true, 0.1, 1e-5); }},
      {"_native_batch_norm_legit_no_training",
       [] { return batch_norm(image(), zeros({2}), ones({2}), ones({2}), zeros({2}), false, 0.1, 1e-5); }},
      {"_pdist_forward", [] { return pdist(rand({4, 3})); }},
      {"_softmax", [] { return softmax(rand({2, 3}), 1); }},
      {"_embedding_bag", [] { return embedding_bag(rand({5, 3}), arange(4), tensor({0, 2})); }},
      {"adaptive_avg_pool1d", [] { return adaptive_avg_pool1d(rand({1, 2, 7}), 3); }},
      {"addmm", [] { return addmm(rand({3}), rand({2, 4}), rand({4, 3})); }},
      {"avg_pool1d", [] { return avg_pool1d(rand({1, 2, 7}), 3); }},
      {"avg_pool2d", [] { return avg_pool2d(image(), 2); }},
      {"avg_pool2d_backward", [] { return avg_pool2d_backward(rand({1, 2, 3, 3}), image(), 2, 2, 0, false, true); }},
      {"avg_pool3d", [] { return avg_pool3d(volume(), 2); }},
      {"col2im", [] { return col2im(rand({1, 8, 25}), {6, 6}, 2); }},
      {"convolution_backward",
       [] {
         return std::get<0>(convolution_backward(rand({1, 3, 6, 6}), image(), rand({3, 2, 3, 3}), 1, 1, 1, false, 0, 1));
       }},
      {"copy", [] { return zeros({2}).copy_(ones({2})); }},
      {"embedding_dense_backward", [] { return embedding_dense_backward(rand({3, 4}), arange(3), 5); }},
      {"empty", [] { return empty({2}); }},
      {"empty_strided", [] { return empty_strided({2, 3}, {1, 2}); }},
      {"fill", [] { return zeros({2}).fill_(3); }},
      {"grid_sampler_2d", [] { return grid_sample(image(), rand({1, 3, 4, 2})); }},
      {"max", [] { return std::get<0>(max(rand({2, 3}), 1)); }},
      {"max_pool2d_with_indices", [] { return std::get<1>(max_pool2d_with_indices(image(), 2)); }},
      {"max_pool2d_with_indices_backward",
       [] {
         auto [values, indices] = max_pool2d_with_indices(image(), 2);
         return max_pool2d_with_indices_backward(ones_like(values), image(), indices);
       }},
      {"max_pool3d_with_indices", [] { return std::get<1>(max_pool3d_with_indices(volume(), 2)); }},
      {"mean", [] { return mean(rand({2, 3})); }},
      {"min", [] { return std::get<1>(min(rand({2, 3}), 1)); }},
      {"native_dropout", [] { return std::get<0>(native_dropout(rand({9}), 0.5, true)); }},
      {"native_group_norm", [] { return group_norm(image(), 2); }},
      {"native_group_norm_backward",
       [] {
         auto [y, mean, rstd] = native_group_norm(image(), {}, {}, 1, 2, 36, 2, 1e-5);
         return std::get<0>(native_group_norm_backward(ones_like(y), image(), mean, rstd, {}, 1, 2, 36, 2));
       }},
      {"native_layer_norm_backward",
       [] {
         auto [y, mean, rstd] = native_layer_norm(rand({2, 3}), {3}, {}, {}, 1e-5);
         return std::get<0>(native_layer_norm_backward(ones_like(y), rand({2, 3}), {3}, mean, rstd, {}, {}));
       }},
      {"randperm", [] { return randperm(5); }},
      {"scalar_tensor", [] { return scalar_tensor(2.5); }},
      {"split_with_sizes", [] { return split_with_sizes(rand({5}), {2, 3})[1]; }},
      {"sym_numel", [] { return scalar_tensor(int64_t(rand({5}).numel())); }},
      {"sym_size", [] { return scalar_tensor(int64_t(rand({5}).size(0))); }},
      {"sym_storage_offset", [] { return scalar_tensor(rand({5}).slice(0, 2).storage_offset()); }},
      {"sym_stride", [] { return scalar_tensor(rand({5}).stride(0)); }},
      {"upsample_bilinear2d", [] { return upsample_bilinear2d(image(), {9, 4}, false); }},
      {"upsample_nearest2d", [] { return upsample_nearest2d(image(), {9, 4}); }},
      {"var", [] { return var(rand({2, 3}), IntList{1}); }},
  };
  return table;
}

TEST(CoreAten, EveryNameIsAnOpAFunctionOrRefused) {
  std::ifstream file(SINTER_TEST_DATA "/core_aten.txt");
  ASSERT_TRUE(file);
  int names = 0;
  for (std::string line; std::getline(file, line); ++names) {
    std::string name = line.substr(0, line.find(':'));
    bool refused = !unavailable_reason(name).empty(), composite = functions().contains(name);
    EXPECT_EQ((find_op(name) != nullptr) + composite + refused, 1) << name;
    if (composite) {
      EXPECT_TRUE(functions().at(name)().defined()) << name;
    }
  }
  EXPECT_GT(names, 150);
}

TEST(CoreAten, WhatIsMissingSaysSo) {
  try {
    Graph::parse("%0 = input : f32[2, 3]\n%1 = resize_(%0) : f32[2, 2]\nreturn %1\n");
    FAIL() << "parsed an op that does not exist";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("'resize_' of Core ATen is not available"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace sinter
