#pragma once
// Memory as a traced program sees it. Every traced tensor is a look (a path of views) at a storage; a write to one look
// gives the storage a new value, and the other handles are taken anew when they are next used. This is functionalisation,
// done while tracing because the tape and the user's questions need the values at once.
#include <source_location>

#include "sinter/capture/segment.h"
#include "sinter/tensor/tensor.h"

namespace sinter::capture {

class Handle;
class Recorder;

struct Storage : RefCounted {
  Storage(Recorder& recorder, uint64_t id) : recorder(&recorder), id(id) {}
  ~Storage();

  Recorder* recorder;  // null once the capture has ended
  const uint64_t id;
  Type type;
  IntList sizes, strides;  // the present layout of the whole
  CellSource source;
  std::optional<InputSource> number;  // no tensor but a number of the call
  std::optional<HostNumber> host_number;  // where it is one of the host's
  int cell = -1;           // once the program of the runtime knows it
  Tensor real;             // the tensor that it is at present; undefined while only this segment knows its value
  Tensor root;             // its value in the present segment, with its history
  uint32_t segment = 0;    // the one that `root` belongs to; 0: none
  uint32_t version = 0;    // counts writes
  bool written = false;    // in the present segment
  bool copied = false;     // a copy that the program made because the memory of its source was not in order
  std::vector<uint64_t> feeds;  // other storages that the segment which made it has computed from it
  bool needs_grad = false; // the real tensor takes part in the caller's history
  Tensor grad;             // of a leaf, as the program has set it
  const Storage* leaf = nullptr;  // of a gradient (CellSource::Kind::kGrad): whose
  std::vector<Handle*> handles;  // tensors of the program that look at it; those of the tape do not count
  bool from_call = false;      // made of the arguments, as far as is known
  std::optional<std::source_location> where;  // the user's line that made it
};

// What a traced tensor stands for.
class Handle final : public TracedValue {
 public:
  // A storage and a path of views on it.
  Handle(IntrusivePtr<Storage> storage, ViewPath path, bool detached);
  // A fixed value of one segment: for the tape, and for the roots of storages.
  Handle(const Recorder* recorder, Value value, uint32_t segment)
      : value(value), segment(segment), recorder(recorder) {}
  ~Handle() override;

  bool has_layout() const override { return true; }
  const void* memory() const override { return storage ? static_cast<const void*>(storage.get()) : value.node; }
  void refresh(TensorImpl& impl) override;
  IntrusivePtr<TracedValue> for_detached() override;
  IntrusivePtr<TracedValue> for_tape() override;

  bool pinned() const { return !storage; }

  IntrusivePtr<Storage> storage;
  ViewPath path;
  bool detached = false;
  Value value;
  uint32_t segment = 0, version = 0;
  const Recorder* recorder = nullptr;
  TensorImpl* body = nullptr;  // of the tensor that the look belongs to
};

}  // namespace sinter::capture
