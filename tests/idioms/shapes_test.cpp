#include "tests/idioms/idioms.h"

namespace {

struct ShapeIdioms : Idioms {};

TEST_F(ShapeIdioms, Views) {
  IDIOM(x.view({4, 3}));
  IDIOM(x.view({-1}));
  IDIOM(x.view(-1));
  IDIOM(x.view({2, -1}));
  IDIOM(x.view({x.size(0), -1}));
  IDIOM(x.view({x.size(0) * 2, x.size(1) / 2}));
  IDIOM(x.reshape({2, 6}));
  IDIOM(torch::reshape(x, {-1, 2}));
  IDIOM(x.t().reshape({12}));
  IDIOM(x.view_as(y));
  IDIOM(x.reshape_as(y.t()));
  IDIOM(x.flatten());
  IDIOM(b.flatten(1));
  IDIOM(torch::flatten(img, /*start_dim=*/1));
  IDIOM(b.flatten(0, 1));
  IDIOM(x.ravel());
  IDIOM(x.unflatten(1, {2, 2}));
  IDIOM(x.t());
  IDIOM(torch::t(x));
  IDIOM(x.transpose(0, 1));
  IDIOM(torch::transpose(b, 1, 2));
  IDIOM(b.transpose(-2, -1));
  IDIOM(b.mT());
  IDIOM(x.numpy_T());
  IDIOM(b.permute({2, 0, 1}));
  IDIOM(torch::permute(b, {1, 0, 2}));
  IDIOM(img.permute({0, 2, 3, 1}).contiguous());
  IDIOM(b.swapaxes(0, 1));
  IDIOM(b.swapdims(0, 2));
  IDIOM(b.movedim(0, -1));
  IDIOM(torch::moveaxis(b, 0, 2));
  IDIOM(x.unsqueeze(0));
  IDIOM(torch::unsqueeze(x, -1));
  IDIOM(x.unsqueeze(1).squeeze(1));
  IDIOM(x.unsqueeze(0).unsqueeze(0).squeeze());
  IDIOM(torch::squeeze(x.unsqueeze(0), 0));
  IDIOM(v.expand({3, 4}));
  IDIOM(w.unsqueeze(1).expand({-1, 4}));
  IDIOM(x.unsqueeze(1).expand({-1, 4, -1}));
  IDIOM(v.expand_as(x));
  IDIOM(torch::broadcast_to(v, {3, 4}));
  IDIOM(torch::broadcast_tensors({v, w.unsqueeze(1)}));
  IDIOM(x.as_strided({2, 2}, {1, 2}));
  IDIOM(x.unfold(1, 2, 1));
  IDIOM(x.contiguous().view({12}));
  IDIOM(x.clone());
  IDIOM(torch::clone(x));
  IDIOM(x.alias());
  IDIOM(torch::atleast_2d(v));
  IDIOM(x.squeeze().unsqueeze(-1).size(2));
  IDIOM_GRAD(x.view({-1}).unsqueeze(0));
  IDIOM_GRAD(x.t().expand({2, 4, 3}));
}

TEST_F(ShapeIdioms, Joins) {
  IDIOM(torch::cat({x, y}));
  IDIOM(torch::cat({x, y}, /*dim=*/1));
  IDIOM(torch::cat({x, y, x}, -1));
  IDIOM(torch::concat({x, y}, 0));
  IDIOM(torch::stack({x, y}));
  IDIOM(torch::stack({x, y}, 1));
  IDIOM(torch::hstack({x, y}));
  IDIOM(torch::vstack({v, v}));
  IDIOM(torch::dstack({v, v}));
  IDIOM(torch::column_stack({w, w}));
  IDIOM(torch::row_stack({v, v}));
  IDIOM(torch::block_diag({x, m}));
  IDIOM_DO({
    std::vector<torch::Tensor> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(x[i] * i);
    return torch::stack(parts);
  });
  IDIOM_DO({
    std::vector<torch::Tensor> parts;
    for (auto& row : x.unbind(0)) parts.emplace_back(row.unsqueeze(0));
    return torch::cat(parts, 0);
  });
  IDIOM(x.chunk(2, 1));
  IDIOM(torch::chunk(x, 3));
  IDIOM(x.split(2, 1));
  IDIOM(x.split(2, /*dim=*/0)[1]);
  IDIOM(torch::split(x, {1, 3}, 1));
  IDIOM(x.split_with_sizes({1, 2}, 0));
  IDIOM(torch::split_with_sizes(x, {1, 3}, 1));
  IDIOM(x.tensor_split(3, 1));
  IDIOM(torch::hsplit(x, 2));
  IDIOM(torch::unbind(x, 1));
  IDIOM(x.unbind(0)[2]);
  IDIOM_GRAD(torch::cat({x, x * 2}, 1));
  IDIOM_GRAD(torch::stack({x, y}));
  IDIOM_GRAD(x.chunk(2, 1)[0] * x.chunk(2, 1)[1]);
}

TEST_F(ShapeIdioms, Copies) {
  IDIOM(x.repeat({2, 1}));
  IDIOM(v.repeat({2, 3}));
  IDIOM(x.tile({1, 2}));
  IDIOM(torch::tile(v, {2, 2}));
  IDIOM(x.repeat_interleave(2));
  IDIOM(torch::repeat_interleave(x, 2, 1));
  IDIOM(x.repeat_interleave(torch::tensor({1, 2, 1}), 0));
  IDIOM(x.flip({0}));
  IDIOM(torch::flip(x, {0, 1}));
  IDIOM(x.fliplr());
  IDIOM(torch::flipud(x));
  IDIOM(x.roll(1, 1));
  IDIOM(torch::roll(x, {1, -1}, {0, 1}));
  IDIOM(torch::rot90(x, 1, {0, 1}));
  IDIOM(x.tril());
  IDIOM(torch::triu(x, 1));
  IDIOM(torch::ones({4, 4}).triu(1).to(torch::kBool));
  IDIOM(torch::diag(v));
  IDIOM(m.diag());
  IDIOM(torch::diag_embed(x));
  IDIOM(torch::diagflat(v, 1));
  IDIOM(torch::constant_pad_nd(x, {1, 1}));
  IDIOM(torch::constant_pad_nd(x, {1, 0, 2, 0}, 3.5));
  IDIOM(torch::reflection_pad1d(seq, {1, 2}));
  IDIOM(torch::replication_pad2d(img, {1, 1, 2, 0}));
  IDIOM(torch::pad(x, {1, 1}));
  IDIOM(torch::vander(v));
  IDIOM(torch::pixel_shuffle(torch::arange(16).view({1, 4, 2, 2}).to(torch::kFloat), 2));
  IDIOM_GRAD(x.repeat({2, 1}));
  IDIOM_GRAD(x.flip({1}).tril());
}

TEST_F(ShapeIdioms, InPlace) {
  IDIOM(x.clone().add_(1));
  IDIOM(x.clone().add_(y, 2));
  IDIOM(x.clone().sub_(y));
  IDIOM(x.clone().mul_(0.5));
  IDIOM(x.clone().div_(2));
  IDIOM(x.clone().neg_());
  IDIOM(x.clone().abs_());
  IDIOM(p.clone().log_());
  IDIOM(p.clone().sqrt_());
  IDIOM(x.clone().exp_());
  IDIOM(x.clone().floor_());
  IDIOM(x.clone().pow_(2));
  IDIOM(x.clone().relu_());
  IDIOM(x.clone().sigmoid_());
  IDIOM(x.clone().tanh_());
  IDIOM(x.clone().clamp_(-1, 1));
  IDIOM(x.clone().clamp_min_(0));
  IDIOM(x.clone().zero_());
  IDIOM(x.clone().fill_(3));
  IDIOM(x.clone().copy_(y));
  IDIOM(x.clone().masked_fill_(mask, 0));
  IDIOM(x.clone().masked_scatter_(mask, y));
  IDIOM(x.clone().lerp_(y, 0.1));
  IDIOM(x.clone().addcmul_(y, p, 0.5));
  IDIOM(x.clone().addcdiv_(y, p, -0.1));
  IDIOM(x.clone().cumsum_(1));
  IDIOM(x.clone().tril_());
  IDIOM(x.clone().squeeze_().unsqueeze_(0));
  IDIOM(x.clone().transpose_(0, 1));
  IDIOM(x.clone().t_());
  IDIOM(x.clone().resize_({2, 2}).sizes());
  IDIOM(mask.clone().logical_not_());
  IDIOM(n.clone().remainder_(3));
  IDIOM(n.clone().bitwise_and_(1));
  IDIOM(x.clone().eq_(y));
  IDIOM(x.clone().renorm_(2, 0, 1.5));
  IDIOM(m.clone().addr_(v, v));
  IDIOM(m.clone().addmm_(m, m, 0.5, 2));
  IDIOM(u.clone().logit_());
  IDIOM((x / 0).nan_to_num_(0, 1, -1));
  IDIOM(x.clone().index_reduce_(0, rows, y.index_select(0, rows), "amax"));
  IDIOM_DO({
    torch::Tensor z = x.clone();
    z += y;
    z -= 1;
    z *= 2;
    z /= p;
    return z;
  });
  IDIOM_DO({
    torch::Tensor z = mask.clone();
    z &= other;
    z |= x > 1;
    return z;
  });
  IDIOM_DO({
    torch::Tensor z = x;
    torch::Tensor copy = z.clone();
    z = z + 1;
    copy.set_data(z);
    return copy;
  });
  IDIOM_DO({
    torch::Tensor z = torch::zeros({2, 6});
    z.resize_as_(x);
    return z;
  });
  IDIOM_DO({
    torch::Tensor z = x.clone();
    std::swap(z, y);
    return y - z;
  });
}

}  // namespace
