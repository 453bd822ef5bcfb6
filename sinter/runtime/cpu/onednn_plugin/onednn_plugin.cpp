// oneDNN behind a C interface. Every primitive is made for one thread and run by one: the library's own pool splits the
// work, so that OpenMP never starts threads that would spin on the same cores.
#include "sinter/runtime/cpu/onednn_plugin/interface.h"

#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <string>
#include <unordered_map>

extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int);

namespace sinter::runtime {

namespace {

using dnnl::memory;

// The number of threads is the caller's own setting, which may serve OpenMP code of the program as well.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

const dnnl::engine& engine() {
  static const auto* cpu = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *cpu;
}

// Memory of the calling thread that grows to what its primitives need. oneDNN's own would be sized on the thread that
// made a primitive.
char* scratch(size_t bytes) {
  struct Block {
    char* data = nullptr;
    size_t size = 0;
    ~Block() { std::free(data); }
  };
  static thread_local Block block;
  if (bytes > block.size) {
    std::free(block.data);
    block.size = (bytes + 4095) / 4096 * 4096;
    block.data = static_cast<char*>(std::aligned_alloc(4096, block.size));
    if (!block.data) block.size = 0;
  }
  return block.data;
}

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

memory::data_type type_of(int64_t type) {
  return type == kOnednnF32    ? memory::data_type::f32
         : type == kOnednnBf16 ? memory::data_type::bf16
                               : memory::data_type::f16;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

struct Primitive {
  dnnl::primitive operation;
  memory::desc given[3], wanted[3], scratchpad;
  dnnl::reorder reorders[3];  // of those that differ: the operands before, the result after
  memory::desc pads[3];       // their scratchpads
  bool differs[3] = {};
  int names[3] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  size_t scratch_bytes = 0;

  template <class Description>
  void finish(const Description& chosen) {
    wanted[0] = chosen.src_desc();
    wanted[1] = chosen.weights_desc();
    wanted[2] = chosen.dst_desc();
    scratchpad = chosen.scratchpad_desc();
    scratch_bytes = aligned(scratchpad.get_size());
    for (int i = 0; i < 3; ++i) {
      differs[i] = given[i] != wanted[i];
      if (!differs[i]) continue;
      auto& from = i == 2 ? wanted[i] : given[i];
      auto& to = i == 2 ? given[i] : wanted[i];
      dnnl::reorder::primitive_desc moved(engine(), from, engine(), to, user_scratchpad());
      reorders[i] = dnnl::reorder(moved);
      pads[i] = moved.scratchpad_desc();
      scratch_bytes += aligned(wanted[i].get_size()) + aligned(pads[i].get_size());
    }
  }
};

// Moves on to the first implementation that may be run; false where none is left. The reference code is there for
// completeness and slower than anything else. The code on tiles (AMX) of oneDNN 2.6 dies of an illegal instruction on
// machines whose kernel grants tiles on request, whether or not the process was granted them; such products have a core
// of ours.
template <class Description>
bool choose(Description& chosen) {
  if (!chosen) return false;
  do {
    const char* name = chosen.impl_info_str();
    if (std::strncmp(name, "ref", 3) != 0 && !std::strstr(name, "amx")) return true;
  } while (chosen.next_impl());
  return false;
}

// No exception may cross the interface.
template <class F>
void* made(F&& make) {
  OneThread alone;
  try {
    return make();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void* make_matmul(const OnednnMatmul* s) {
  return made([&]() -> Primitive* {
    auto description = [&](int64_t type, int64_t rows, int64_t cols, const int64_t* strides) {
      memory::dims sizes{rows, cols}, steps{strides[1], strides[2]};
      if (s->batch > 1) {
        sizes.insert(sizes.begin(), s->batch);
        steps.insert(steps.begin(), strides[0]);
      }
      return memory::desc(sizes, type_of(type), steps);
    };
    auto out = std::make_unique<Primitive>();
    out->given[0] = description(s->type, s->m, s->k, s->a);
    out->given[1] = description(s->type, s->k, s->n, s->b);
    out->given[2] = description(s->out_type, s->m, s->n, s->c);
    dnnl::matmul::desc wish(out->given[0], out->given[1], out->given[2]);
    dnnl::matmul::primitive_desc chosen(wish, user_scratchpad(), engine(), /*allow_empty=*/true);
    if (!choose(chosen)) return nullptr;
    out->operation = dnnl::matmul(chosen);
    out->finish(chosen);
    return out.release();
  });
}

void* make_convolution(const OnednnConvolution* s) {
  return made([&]() -> Primitive* {
    // Leading spatial dimensions of size 1 are left out: oneDNN's best code is for two.
    int first = 0;
    while (first < 2 && s->in[first] == 1 && s->kernel[first] == 1 && s->out[first] == 1 && s->padding[first] == 0)
      ++first;
    memory::dims x{s->images, s->groups * s->channels}, w, y{s->images, s->groups * s->filters};
    if (s->groups > 1) w.push_back(s->groups);
    w.insert(w.end(), {s->filters, s->channels});
    memory::dims strides, dilations, before, after;
    for (int d = first; d < 3; ++d) {
      x.push_back(s->in[d]);
      w.push_back(s->kernel[d]);
      y.push_back(s->out[d]);
      strides.push_back(s->stride[d]);
      dilations.push_back(s->dilation[d] - 1);
      before.push_back(s->padding[d]);
      int64_t reach = (s->out[d] - 1) * s->stride[d] + (s->kernel[d] - 1) * s->dilation[d] + 1;
      after.push_back(reach - s->in[d] - s->padding[d]);
    }
    auto row_major = [&](const memory::dims& sizes) {
      memory::dims steps(sizes.size(), 1);
      for (size_t d = sizes.size() - 1; d > 0; --d) steps[d - 1] = steps[d] * sizes[d];
      return memory::desc(sizes, type_of(s->type), steps);
    };
    auto out = std::make_unique<Primitive>();
    out->given[0] = row_major(x);
    out->given[1] = row_major(w);
    out->given[2] = row_major(y);
    auto any = [&](const memory::dims& sizes) {
      return memory::desc(sizes, type_of(s->type), memory::format_tag::any);
    };
    bool own = s->own_layouts;
    dnnl::convolution_forward::desc wish(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto,
                                         own ? any(x) : out->given[0], any(w), own ? any(y) : out->given[2], strides,
                                         dilations, before, after);
    dnnl::convolution_forward::primitive_desc chosen(wish, user_scratchpad(), engine(), /*allow_empty=*/true);
    if (!choose(chosen)) return nullptr;
    out->operation = dnnl::convolution_forward(chosen);
    out->finish(chosen);
    return out.release();
  });
}

bool run(const void* primitive, const void* a, const void* b, void* c) {
  auto& p = *static_cast<const Primitive*>(primitive);
  OneThread alone;
  try {
    char* free = scratch(p.scratch_bytes);
    if (p.scratch_bytes && !free) return false;
    static thread_local dnnl::stream stream(engine());
    void* data[3] = {const_cast<void*>(a), const_cast<void*>(b), c};
    std::unordered_map<int, memory> arguments;
    if (size_t bytes = p.scratchpad.get_size()) {
      arguments[DNNL_ARG_SCRATCHPAD] = memory(p.scratchpad, engine(), free);
      free += aligned(bytes);
    }
    memory given[3], wanted[3];
    auto reorder = [&](int i, memory& from, memory& to) {
      std::unordered_map<int, memory> moved{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
      if (size_t bytes = p.pads[i].get_size()) {
        moved[DNNL_ARG_SCRATCHPAD] = memory(p.pads[i], engine(), free);
        free += aligned(bytes);
      }
      p.reorders[i].execute(stream, moved);
    };
    for (int i = 0; i < 3; ++i) {
      given[i] = memory(p.given[i], engine(), data[i]);
      wanted[i] = given[i];
      if (p.differs[i]) {
        wanted[i] = memory(p.wanted[i], engine(), free);
        free += aligned(p.wanted[i].get_size());
        if (i < 2) reorder(i, given[i], wanted[i]);
      }
      arguments[p.names[i]] = wanted[i];
    }
    p.operation.execute(stream, arguments);
    if (p.differs[2]) reorder(2, wanted[2], given[2]);
    stream.wait();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void free_primitive(void* primitive) { delete static_cast<Primitive*>(primitive); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const OnednnApi* sinter_onednn_open_v1(const char** problem) {
  static const std::string version = [] {
    const dnnl_version_t* v = dnnl_version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }();
  static const OnednnApi api{version.c_str(), make_matmul, make_convolution, run, free_primitive};
  unsigned runtime = dnnl_version()->cpu_runtime;
  if (runtime == DNNL_RUNTIME_OMP || runtime == DNNL_RUNTIME_SEQ) return &api;
  *problem = "oneDNN was built on threads that cannot be held to one";
  return nullptr;
}

}  // namespace sinter::runtime
