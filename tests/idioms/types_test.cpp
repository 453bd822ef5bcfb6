#include "tests/idioms/idioms.h"

namespace {

struct TypeIdioms : Idioms {};

TEST_F(TypeIdioms, Dtypes) {
  IDIOM(x.to(torch::kFloat64));
  IDIOM(x.to(torch::kInt64));
  IDIOM(x.to(torch::kHalf));
  IDIOM(x.to(torch::kBFloat16));
  IDIOM(x.toType(torch::kInt));
  IDIOM(x.toType(torch::ScalarType::Double));
  IDIOM(n.to(torch::kFloat).mean());
  IDIOM(x.type_as(n));
  IDIOM(x.to(n));
  IDIOM(x.to(torch::dtype(torch::kFloat64)));
  IDIOM(x.to(torch::kHalf).to(x.options()));
  IDIOM(x.to(torch::kCPU));
  IDIOM(x.to(torch::Device("cpu")));
  IDIOM(x.to(torch::Device(torch::kCPU), torch::kFloat64));
  IDIOM(x.to(torch::kFloat64, /*non_blocking=*/false, /*copy=*/true));
  IDIOM(x.cpu());
  IDIOM(x.gt(0).to(torch::kFloat));
  IDIOM(mask.to(torch::kLong).sum());
  IDIOM(x.view(torch::kInt32));
  IDIOM(x + n);
  IDIOM(n + 1.5);
  IDIOM(n / 2);
  IDIOM(n * mask);
  IDIOM(torch::tensor({1}, torch::kInt32) + torch::tensor({2}, torch::kInt64));
  IDIOM(torch::tensor({1}, torch::kHalf) + torch::tensor({2}, torch::kBFloat16));
  IDIOM_HOLDS(x.dtype() == torch::kFloat32);
  IDIOM_HOLDS(x.scalar_type() == torch::kFloat);
  IDIOM_HOLDS(x.scalar_type() == at::ScalarType::Float);
  IDIOM_HOLDS(x.scalar_type() != torch::kDouble);
  IDIOM_HOLDS(n.dtype() == torch::kLong);
  IDIOM_HOLDS(n.dtype() == torch::kI64);
  IDIOM_HOLDS(mask.dtype() == torch::kBool);
  IDIOM_HOLDS(x.is_floating_point());
  IDIOM_HOLDS(!n.is_floating_point());
  IDIOM_HOLDS(x.is_signed());
  IDIOM_HOLDS(x.options().dtype() == torch::kFloat32);
  IDIOM_HOLDS(x.options().device().is_cpu());
  IDIOM_HOLDS(torch::promoteTypes(torch::kInt, torch::kFloat) == torch::kFloat);
  IDIOM_HOLDS(torch::promote_types(torch::kByte, torch::kChar) == torch::kShort);
  IDIOM_HOLDS(torch::can_cast(torch::kInt, torch::kFloat));
  IDIOM_HOLDS(!torch::can_cast(torch::kFloat, torch::kInt));
  IDIOM_HOLDS(c10::isFloatingType(torch::kHalf));
  IDIOM_HOLDS(c10::isIntegralType(torch::kBool, /*includeBool=*/true));
  IDIOM_HOLDS(c10::elementSize(torch::kDouble) == 8);
  IDIOM_HOLDS(std::string(c10::toString(torch::kLong)) == "Long");
  IDIOM_HOLDS_DO({
    torch::Dtype dtype = torch::kFloat64;
    return torch::zeros({1}, dtype).scalar_type() == dtype;
  });
  IDIOM_HOLDS_DO({
    switch (x.scalar_type()) {
      case torch::kFloat: return true;
      case torch::kDouble: return false;
      default: return false;
    }
  });
  IDIOM_HOLDS(torch::dtype<float>().dtype() == torch::kFloat32);
  IDIOM(torch::zeros({2}, torch::TensorOptions().dtype<int64_t>()));
}

TEST_F(TypeIdioms, Properties) {
  IDIOM(x.dim());
  IDIOM(x.ndimension());
  IDIOM(x.numel());
  IDIOM(x.size(0));
  IDIOM(x.size(-1));
  IDIOM(x.sizes());
  IDIOM(x.sizes().vec());
  IDIOM(x.sizes()[1]);
  IDIOM(x.sizes().size());
  IDIOM(b.sizes().slice(1));
  IDIOM(b.sizes().front() + b.sizes().back());
  IDIOM(x.strides());
  IDIOM(x.stride(0));
  IDIOM(x.t().strides().vec());
  IDIOM(x.element_size());
  IDIOM(x.itemsize());
  IDIOM(x.nbytes());
  IDIOM(x[1].storage_offset());
  IDIOM(x.is_contiguous());
  IDIOM(x.t().is_contiguous());
  IDIOM(img.contiguous(torch::MemoryFormat::ChannelsLast).is_contiguous(torch::MemoryFormat::ChannelsLast));
  IDIOM(img.to(torch::MemoryFormat::ChannelsLast).stride(1));
  IDIOM(img.contiguous(at::MemoryFormat::ChannelsLast).strides());
  IDIOM(x.get_device());
  IDIOM_HOLDS(x.sizes() == y.sizes());
  IDIOM_HOLDS(x.sizes() == torch::IntArrayRef({3, 4}));
  IDIOM_HOLDS(x.sizes() != b.sizes());
  IDIOM_HOLDS(x.sizes().equals({3, 4}));
  IDIOM_HOLDS(x.sizes() == std::vector<int64_t>({3, 4}));
  IDIOM_HOLDS(x.is_same_size(y));
  IDIOM_HOLDS(x.defined());
  IDIOM_HOLDS(!torch::Tensor().defined());
  IDIOM_HOLDS(x.is_same(x));
  IDIOM_HOLDS(x.view({-1}).is_alias_of(x));
  IDIOM_HOLDS(x.layout() == torch::kStrided);
  IDIOM_HOLDS(!x.is_sparse());
  IDIOM_HOLDS(x.dim() == 2 && x.size(0) == 3);
  IDIOM_HOLDS_DO({
    for (int64_t size : x.sizes())
      if (size < 3) return false;
    return true;
  });
  IDIOM_HOLDS_DO({
    int64_t rows = x.size(0), columns = x.size(1);
    return rows * columns == x.numel();
  });
  IDIOM_HOLDS_DO({
    const auto batch_size = x.size(0);
    int count = 0;
    for (int i = 0; i < batch_size; ++i) count += 1;
    return count == 3;
  });
}

TEST_F(TypeIdioms, Devices) {
  IDIOM_HOLDS(x.device() == torch::kCPU);
  IDIOM_HOLDS(x.device() == torch::Device(torch::kCPU));
  IDIOM_HOLDS(x.device().is_cpu());
  IDIOM_HOLDS(!x.device().is_cuda());
  IDIOM_HOLDS(x.device().type() == torch::kCPU);
  IDIOM_HOLDS(x.device().type() == torch::DeviceType::CPU);
  IDIOM_HOLDS(!x.is_cuda());
  IDIOM_HOLDS(x.is_cpu());
  IDIOM_HOLDS(torch::Device("cuda:1").index() == 1);
  IDIOM_HOLDS(torch::Device(torch::kCUDA, 1).str() == "cuda:1");
  IDIOM_HOLDS(torch::Device(torch::kCUDA).is_cuda());
  IDIOM_HOLDS_DO({
    torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
    return x.to(device).device().type() == device.type();
  });
  IDIOM_HOLDS_DO({
    torch::DeviceType device_type = torch::kCPU;
    if (torch::cuda::is_available()) device_type = torch::kCUDA;
    torch::Device device(device_type);
    return torch::zeros({2}, device).device().type() == device_type;
  });
  IDIOM_HOLDS(torch::cuda::device_count() >= 0);
  IDIOM_HOLDS_DO({
    auto device = torch::device(torch::kCPU);
    return torch::ones({2}, device).is_cpu();
  });
  IDIOM_HOLDS_DO({
    std::stringstream out;
    out << x.device();
    return out.str() == "cpu";
  });
}

TEST_F(TypeIdioms, Numbers) {
  IDIOM(x.sum().item<float>());
  IDIOM(x[1][2].item<double>());
  IDIOM(n[0][0].item<int64_t>());
  IDIOM(n[0][0].item<int>());
  IDIOM(n.sum().item().toInt());
  IDIOM(x.mean().item().toFloat());
  IDIOM(x.mean().item().toDouble());
  IDIOM(x.max().item().to<double>());
  IDIOM(mask[0][0].item<bool>());
  IDIOM(n.max().item().toLong());
  IDIOM(*x.data_ptr<float>());
  IDIOM(torch::Scalar(2.5).toInt());
  IDIOM_HOLDS(torch::Scalar(2.5).isFloatingPoint());
  IDIOM_HOLDS(torch::Scalar(2).isIntegral(false));
  IDIOM_HOLDS(at::Scalar(true).isBoolean());
  IDIOM_HOLDS(x.sum().item<float>() < 100);
  IDIOM_HOLDS(one.is_nonzero());
  IDIOM_HOLDS(mask.any().item<bool>());
  IDIOM_DO({
    torch::Scalar half = 0.5;
    return x * half;
  });
  IDIOM_DO({
    at::Scalar s = x[0][0].item();
    return y + s;
  });
  IDIOM_HOLDS_DO({
    c10::optional<int64_t> none = c10::nullopt;
    torch::optional<double> some = 1.5;
    return !none.has_value() && some.value() == 1.5;
  });
  IDIOM_HOLDS_DO({
    c10::IntArrayRef sizes = x.sizes();
    return sizes.size() == 2 && sizes[0] == 3;
  });
  IDIOM_DO({
    auto total = [](at::TensorList tensors) {
      torch::Tensor sum = torch::zeros({3, 4});
      for (const auto& t : tensors) sum = sum + t;
      return sum;
    };
    return total({x, y});
  });
  IDIOM_DO({
    auto made = [](torch::IntArrayRef shape) { return torch::ones(shape); };
    return made({2, 2});
  });
}

TEST_F(TypeIdioms, Shown) {
  IDIOM_HOLDS_DO({
    std::ostringstream out;
    out << x.sizes();
    return out.str() == "[3, 4]";
  });
  IDIOM_HOLDS_DO({
    std::stringstream out;
    out << x << std::endl;
    return !out.str().empty();
  });
  IDIOM_HOLDS_DO({
    try {
      torch::zeros({2, 3}).matmul(torch::zeros({2, 3}));
    } catch (const c10::Error& e) {
      return std::string(e.what()).size() > 0;
    }
    return false;
  });
  IDIOM_HOLDS_DO({
    try {
      x.view({5, 5});
    } catch (const std::exception& e) {
      return true;
    }
    return false;
  });
}

}  // namespace
