#include "sinter/models/parts/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sinter/base/error.h"
#include "sinter/nn/module.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::models {

RopeConfig RopeConfig::read(const ConfigFile& file, int64_t head_dim, const std::string& layer_type, double part) {
  RopeConfig rope;
  std::optional<ConfigFile> scaling = file.object("rope_parameters");
  if (scaling && !layer_type.empty() && scaling->contains(layer_type)) scaling = scaling->object(layer_type);
  bool newer = scaling.has_value();
  if (!newer) scaling = file.object("rope_scaling");
  rope.max_positions = rope.original_max_positions = file.size("max_position_embeddings", 2048);
  rope.original_max_positions = file.size("original_max_position_embeddings", rope.original_max_positions);
  // The oldest names are GPT-NeoX's.
  rope.theta = file.number("rope_theta", file.number("rotary_emb_base", rope.theta));
  part = file.number("partial_rotary_factor", file.number("rotary_pct", part));
  if (scaling) {
    rope.type = scaling->text("rope_type", scaling->text("type", "default"));
    rope.theta = scaling->number("rope_theta", rope.theta);
    part = scaling->number("partial_rotary_factor", part);
    rope.factor = scaling->number("factor", rope.factor);
    rope.original_max_positions = scaling->size("original_max_position_embeddings", rope.original_max_positions);
    rope.low_freq_factor = scaling->number("low_freq_factor", rope.low_freq_factor);
    rope.high_freq_factor = scaling->number("high_freq_factor", rope.high_freq_factor);
    rope.beta_fast = scaling->number("beta_fast", rope.beta_fast);
    rope.beta_slow = scaling->number("beta_slow", rope.beta_slow);
    rope.truncate = scaling->boolean("truncate", rope.truncate);
    rope.short_factor = scaling->numbers("short_factor");
    rope.long_factor = scaling->numbers("long_factor");
  }
  if (rope.type == "su") rope.type = "longrope";
  rope.dim = int64_t(double(head_dim) * part);
  check(rope.dim >= 2 && rope.dim % 2 == 0 && rope.dim <= head_dim, "config: '{}' rotates {} of {} elements of a head",
        file.name(), rope.dim, head_dim);
  check(rope.theta > 1 && rope.factor > 0, "config: '{}' has rope_theta {} and factor {}", file.name(), rope.theta,
        rope.factor);

  if (rope.type == "yarn") {
    auto scale = [&](double m) { return rope.factor <= 1 ? 1.0 : 0.1 * m * std::log(rope.factor) + 1; };
    double mscale = scaling->number("mscale", 0), all = scaling->number("mscale_all_dim", 0);
    rope.attention_factor = mscale != 0 && all != 0 ? scale(mscale) / scale(all) : scale(1);
  } else if (rope.type == "longrope") {
    auto half = size_t(rope.dim / 2);
    check(rope.short_factor.size() == half && rope.long_factor.size() == half,
          "config: '{}': longrope needs short_factor and long_factor of {} numbers", file.name(), half);
    double ratio = double(rope.max_positions) / double(rope.original_max_positions);
    if (ratio > 1)
      rope.attention_factor = std::sqrt(1 + std::log(ratio) / std::log(double(rope.original_max_positions)));
  } else {
    check(rope.type == "default" || rope.type == "linear" || rope.type == "dynamic" || rope.type == "llama3",
          "config: '{}' has the rope type '{}'; known are default, linear, dynamic, yarn, llama3, longrope",
          file.name(), rope.type);
  }
  if (scaling) rope.attention_factor = scaling->number("attention_factor", rope.attention_factor);
  return rope;
}

namespace {

// Low frequencies are divided by the factor, high ones kept, those between blended.
double llama3_frequency(const RopeConfig& c, double frequency) {
  double turns = double(c.original_max_positions) * frequency / (2 * std::numbers::pi);
  if (turns < c.low_freq_factor) return frequency / c.factor;
  if (turns > c.high_freq_factor) return frequency;
  double smooth = (turns - c.low_freq_factor) / (c.high_freq_factor - c.low_freq_factor);
  return (1 - smooth) * frequency / c.factor + smooth * frequency;
}

// The same blend along the index of the frequency.
double yarn_frequency(const RopeConfig& c, int64_t i, double frequency) {
  auto index_at = [&](double turns) {
    return double(c.dim) * std::log(double(c.original_max_positions) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(c.theta));
  };
  double low = index_at(c.beta_fast), high = index_at(c.beta_slow);
  if (c.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, double(c.dim - 1));
  if (low == high) high += 0.001;
  double stretched = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
  return stretched * frequency / c.factor + (1 - stretched) * frequency;
}

}  // namespace

Rope::Rope(RopeConfig config) : config_(std::move(config)) {
  if (config_.dim == 0) return;
  std::vector<float> first, second;
  for (int64_t i = 0; i < config_.dim / 2; ++i) {
    double exponent = 2.0 * double(i) / double(config_.dim), frequency = std::pow(config_.theta, -exponent);
    if (config_.type == "linear") frequency /= config_.factor;
    if (config_.type == "llama3") frequency = llama3_frequency(config_, frequency);
    if (config_.type == "yarn") frequency = yarn_frequency(config_, i, frequency);
    if (config_.type == "longrope") {
      second.push_back(float(frequency / config_.long_factor[size_t(i)]));
      frequency /= config_.short_factor[size_t(i)];
    }
    // The dynamic kind knows its base only when it is called.
    first.push_back(config_.type == "dynamic" ? float(exponent) : float(frequency));
  }
  Device device = nn::parameter_options().device_;
  frequencies_ = tensor(first).to(device);
  if (!second.empty()) long_frequencies_ = tensor(second).to(device);
}

RopeTable Rope::operator()(const Tensor& positions) const {
  if (config_.dim == 0) return {};
  Tensor frequencies = frequencies_.to(positions.device());
  // How far a text has come is its own affair: rows do not stretch each other.
  auto last = [&] { return positions.dim() == 2 ? positions.amax({-1}, true) : positions.amax(); };
  if (config_.type == "dynamic") {
    double limit = double(config_.max_positions), dim = double(config_.dim);
    Tensor length = (last().to(kFloat32) + 1).clamp_min(limit);
    Tensor growth = length * (config_.factor / limit) - (config_.factor - 1);
    Tensor log_base = growth.log() * (dim / (dim - 2)) + std::log(config_.theta);
    frequencies = (frequencies * log_base).neg().exp();
  } else if (config_.type == "longrope") {
    Tensor is_long = last() >= config_.original_max_positions;
    frequencies = where(is_long, long_frequencies_.to(positions.device()), frequencies);
  }
  if (frequencies.dim() == 2) frequencies = frequencies.unsqueeze(1);
  Tensor angles = positions.to(kFloat32).unsqueeze(-1) * frequencies;
  if (positions.dim() == 2) angles = angles.unsqueeze(1);
  if (config_.attention_factor == 1) return {angles.cos(), angles.sin(), config_.interleaved};
  return {angles.cos() * config_.attention_factor, angles.sin() * config_.attention_factor, config_.interleaved};
}

std::vector<Tensor> Rope::tensors() const {
  if (config_.dim == 0) return {};
  std::vector<Tensor> out{frequencies_};
  if (long_frequencies_.defined()) out.push_back(long_frequencies_);
  return out;
}

Tensor rotate(const Tensor& x, const RopeTable& table) {
  if (!table.cos.defined()) return x;
  Tensor cos = table.cos.to(x.dtype()), sin = table.sin.to(x.dtype());
  Dim half = cos.size(-1);
  TensorList parts;
  if (table.interleaved) {
    Tensor pairs = x.slice(-1, 0, half * 2).unflatten(-1, {half, 2});
    Tensor a = pairs.select(-1, 0), b = pairs.select(-1, 1);
    parts = {stack({a * cos - b * sin, b * cos + a * sin}, -1).flatten(-2)};
  } else {
    Tensor a = x.slice(-1, 0, half), b = x.slice(-1, half, half * 2);
    parts = {a * cos - b * sin, b * cos + a * sin};
  }
  if (half * 2 < x.size(-1)) parts.push_back(x.slice(-1, half * 2));
  return cat(parts, -1);
}

}  // namespace sinter::models
