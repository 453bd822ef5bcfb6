#pragma once
// The tracer behind compile(): records a function into segments. Values that the host asks for are obtained by ending the
// segment and having the host of the capture run it.
#include <map>
#include <set>
#include <unordered_map>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/layouts.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter::capture {

class Recorder;

// A segment as recorded, before it is made ready to run.
struct Draft {
  Segment segment;  // without executables
  Graph graph;
  int phase = 0, regions = 0;        // of what is recorded next: see Marks
  int checkpoint = 0;                // the last call of checkpoint(), which is the last region
  std::vector<Tensor> roots;         // the traced value of each output that is a tensor of the program
  std::vector<Tensor> grad_targets;  // for each operand of the graph: what its gradient is taken of, or undefined
};

// The gradients of a draft recorded behind it, into one graph.
struct Joint {
  std::vector<int> targets;   // operands of the forward graph
  std::vector<int> tangents;  // its differentiable results
  std::vector<std::vector<bool>> follows;  // for each target which of them lead to it
  std::vector<std::vector<bool>> meet;  // for each two of these whether an op has a part in both
  std::vector<std::string> failures;    // for each of these: why it has no gradient, or empty
};

// Runs segments, or knows that they have been run.
class SegmentHost {
 public:
  virtual ~SegmentHost() = default;
  // Runs the segment; gives the bits of the answer to its question. Cells then hold its results.
  virtual int64_t finish(Recorder& recorder, Draft& draft) = 0;
  // The tensor in a cell.
  virtual const Tensor& tensor_in(int cell) const = 0;
  // The tensor of a cell that the program meets now.
  virtual Tensor bind(int cell, const CellSource& source) = 0;
  // A tensor that host code has made goes into a cell.
  virtual void place(int cell, const Tensor& tensor) = 0;
  // Whether segments are run, or were; else nothing is ever in cells that they fill.
  virtual bool runs() const = 0;
  // Computes values of the draft from the operands of this call, beside the program.
  virtual std::vector<Tensor> compute(Draft& draft, std::vector<Value> values) = 0;
  // Whether the function is called every time.
  virtual bool follows() const = 0;
  // Whether requires_grad_() on a tensor of the program's own making ends the segment from the start: see LeavesCross.
  virtual bool leaves_break() const = 0;
  // A leaf of the first segment outlives it.
  virtual void leaf_crosses() const = 0;
  // Host code takes part that no edge can record: the function has to be called every time.
  virtual void must_follow(const Question& question) = 0;
  // Whether a number that the segment under way takes at this point is a value of it: see host_numbers.h.
  virtual bool is_value(uint64_t point, const Scalar& number) = 0;
};

// The program cannot be captured in this call; the reason says why. Only thrown before anything has been run.
struct CannotCapture {
  std::string reason;
};

// The function has failed while sizes were symbolic, before anything has been run: with numbers it may not.
struct FailsWithSymbols {};

// A tensor made inside that requires a gradient is alive where the first segment ends. The tape has one node for a segment, so
// that no gradient would come to a leaf inside it: captured anew, such a leaf begins a segment.
struct LeavesCross {};

class Recorder final : public ProgramTracer {
 public:
  Recorder(SegmentHost& host, SizeTable& sizes) : host_(host), sizes_(sizes) {}
  ~Recorder() override;

  // --- the program's inputs
  // A tensor of the arguments. `type` has the symbolic sizes.
  Tensor add_argument(int index, const Tensor& real, const Type& type, const std::string& name, bool needs_grad);
  // A group of arguments that overlap in memory: its memory as one storage; then each as a look at it.
  IntrusivePtr<Storage> add_memory(int index, const Tensor& flat);
  Tensor add_overlapping(const IntrusivePtr<Storage>& memory, const Tensor& real);
  // An argument that is the same tensor as an earlier one.
  Tensor same_argument(const Tensor& real);
  // A real tensor that host code has made in between.
  Tensor enter(const Tensor& real);
  // A number of the arguments whose value is not part of the program.
  Scalar add_number(int index, DType dtype, const std::string& name);
  // A number that the host reads before the segment runs, in every call anew.
  Scalar add_host_number(std::function<double()> read);
  // A change of the host's state before the segment runs; it has been made for this call.
  void add_host_action(std::function<void()> apply);
  const std::vector<double>& read_numbers() const { return read_numbers_; }
  bool has_draws() const { return draft_.segment.draws > 0; }
  // Whether it stands for a whole tensor of the arguments, whose requires_grad is another one.
  bool changes_argument(const TensorImpl& tensor, bool requires_grad) const;
  // Ends the segment if it has used this real tensor, of which something is about to change.
  void settle_use(const TensorImpl& real);
  // requires_grad_() on a tensor of the program's own making. False: it is a leaf of the present segment, as any tensor.
  bool make_leaf(const TensorImpl& tensor);

  // Ends the last segment with these results.
  void finish(std::span<const Tensor> results, std::vector<Dim> sizes, std::vector<int> numbers,
              std::shared_ptr<const void> prototype);
  // Runs what was recorded so far for its effects alone: an exception has ended the program. Whether there were any.
  bool flush();
  // Whether the function has thrown: what is recorded by now is the end of nothing that a later call could come to.
  bool is_failing() const { return failing_; }
  // Once the function has returned and its results are gone: tensors of the program that the host still holds (a member, a
  // static) become the real ones that they stand for. Not those made of the arguments, which another call would have to
  // set anew, unless the function is called every time or has failed.
  struct Outlived {
    std::string real, lost;  // where the first of either kind was made; empty: there is none
  };
  Outlived release(bool failed);
  // The draft that the host has not taken, and the values that host code still holds of it.
  Draft& unfinished() {
    handed_over_ = false;
    return draft_;
  }
  void compute_held();
  int segments() const { return int(segment_) - 1; }
  // What the guards must know of memory: see Guards::keep_apart.
  const std::vector<Sharing>& sharings() const { return sharings_; }
  const std::vector<GradSharing>& grad_sharings() const { return grad_sharings_; }
  const TensorList& written_captured() const { return written_captured_; }
  bool writes_arguments() const { return writes_arguments_; }
  // Appends tangents and gradients to the graph of the draft that is being finished.
  Joint differentiate(Draft& draft);

  // --- Tracer
  std::vector<Tensor> record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override;
  bool decide(DimCompare op, const Dim& a, const Dim& b) override;
  int64_t specialize(const Dim& d, const std::source_location* where, const void* return_address) override;
  void asked_size(const Dim& d, const std::source_location& where) override;
  std::optional<int64_t> hint(const Dim& d) override { return sizes_.value(d); }
  void write(const Tensor& out, const Tensor& value) override;
  Scalar item(const Tensor& tensor) override;
  const TensorImpl& memory_of(const Tensor& tensor, const char* asker) override;
  std::vector<TensorArg> operands(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override;
  void recorded(const Op& op, std::span<const Tensor> results) override;
  void detaches(const Tensor& eager) override { captured(eager); }
  void layout_matters(const Tensor& tensor) override;
  void lends(const Tensor& blob) override;
  Tensor operand(const Tensor& eager) override;
  std::optional<TensorList> flow_outside(const TensorList& tensors, std::span<const Tensor> targets,
                                         const std::function<TensorList(const TensorList&)>& flow) override;
  Tensor present_value(const Tensor& tensor) override;
  Tensor empty(const Shape& shape, const TensorOptions& options) override;
  Tensor constant(const Tensor& made) override;
  void lay_out(const Tensor& fresh, std::span<const int64_t> strides) override;
  std::vector<TensorArg> draw() override;
  Tensor grad_of(const Tensor& leaf, const Tensor& grad) override;
  void before_grad_changes(const Tensor& leaf) override;

  // Asks about a tensor of one element.
  bool truth(const Tensor& tensor);
  Scalar number(const Tensor& tensor);
  // Its value, for host code that runs in every call.
  Scalar show(const Tensor& tensor);
  // A piece of the program that runs as it is, on real tensors, in every call.
  void step_aside(const char* what);
  Tensor real_of(const Tensor& tensor);

  void refresh(TensorImpl& impl, Handle& handle);
  Value value_of(const Tensor& tensor);

 private:
  friend struct Storage;
  friend class Handle;

  // The line of a question about sizes: operators have none of their own.
  std::string line_of(const Dim& a, const Dim& b) const;
  void forget(Storage& storage);
  IntrusivePtr<Storage> new_storage(const Type& type, const IntList& sizes, const IntList& strides);
  IntrusivePtr<Storage> storage_of(const Tensor& tensor);
  IntrusivePtr<Storage> captured(const Tensor& eager);
  IntrusivePtr<Storage> of_the_host(const Tensor& real);
  void take_over(Storage& storage, const Tensor& eager);
  bool is_detached(const Tensor& tensor);
  const Tensor& root_of(Storage& storage);
  int bind(Storage& storage);
  Tensor pin(Value value, const Storage& layout);
  Value add_input(const Storage& storage);
  Tensor make_handle(const IntrusivePtr<Storage>& storage, ViewPath path, Value value, bool detached);
  Tensor fresh_result(const Op& op, std::span<const TensorArg> inputs, Value value);
  Tensor view_of(const Op& op, const Tensor& operand, const Attrs& attrs, Value value);
  Tensor view_result(const Op& op, const Tensor& operand, const Attrs& attrs, Value value);
  Tensor with_storage(const Tensor& pinned);
  TensorArg host_number(const TensorArg& given);
  bool is_lent(const Tensor& eager) const;
  Tensor snapshot(const Tensor& lent);
  void fit_broadcast(const Op& op, std::vector<TensorArg>& operands, const Attrs& attrs);
  Storage& leaf_storage(const Tensor& leaf);
  void keep_layout(const Tensor& tensor, const std::function<IntList(const Layout&)>& decided);
  void keep_layout(const Storage& storage, const ViewPath& path, const std::function<IntList(const Layout&)>& decided);
  Marks marks();
  void ask_sizes(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs);
  void restore_grads();
  void check_alone(const Storage& storage);
  // `eager` lies in the memory of a storage that is known already.
  void note_sharing(const Storage& known, const Tensor& eager, bool same);
  // The gradient of a leaf, which does.
  void note_grad_sharing(const Storage& leaf, const Storage& known, bool same);
  // `settle`: the gradients that the program has left in leaves so far are put there now.
  int64_t end_segment(Question question, const Tensor& asked, std::span<const Tensor> results, bool settle = false);
  std::vector<std::pair<Storage*, Tensor>> settle_grads(std::vector<Storage*>& needed);
  ResultTensor result_of(const Tensor& tensor);
  void add_output(Storage& storage, bool written, std::vector<Value>& values);
  void begin_segment();
  bool has_leaf() const;  // of the program's own making, in the present segment
  // The number that a size which the data decides was found to be.
  std::optional<int64_t> told(const Dim& d) const;
  void follow_actions();
  // Which values of the segment are made of the arguments.
  void trace_origins();
  // Storages that tensors of the host look at, beside those of the results.
  std::vector<Storage*> outliving_beside(std::span<const Tensor> results);
  // Gives storages whose values only this segment knows their real tensors.
  void compute(std::span<Storage* const> storages);
  // A look at the real tensor of its storage, as the sizes are at present.
  Tensor real_view(const Handle& handle, const Tensor& whole) const;
  void become_real(Handle& handle, const Tensor& whole);

  SegmentHost& host_;
  SizeTable& sizes_;
  uint32_t segment_ = 1;
  Draft draft_;
  // Whether gradients are enabled where the function is called: a tensor may first be met under a NoGradGuard.
  const bool records_history_ = autograd::grad_enabled();
  bool differentiating_ = false;
  bool has_ended_ = false;                           // a segment of this call
  bool failing_ = false;                             // the function has thrown
  bool handed_over_ = false;                         // the draft is the host's: what fails now fails while it is run
  uint64_t trail_ = 0;                               // of the ops of the segment: tells the points of the program apart
  uint64_t numbers_here_ = 0;                        // that the op under way has taken
  uint64_t next_id_ = 1;
  int next_cell_ = 0;
  std::map<uint64_t, Storage*> storages_;            // all that exist, in the order of their making
  std::set<uint64_t> carried_;                       // those whose real tensors a segment has used
  std::vector<IntrusivePtr<Storage>> alive_;          // of arguments and captured tensors: alive to the end
  std::unordered_map<const TensorImpl*, Storage*> captured_;
  std::unordered_map<const Buffer*, std::vector<Storage*>> by_buffer_;
  std::vector<Tensor> materialised_;                 // what memory_of handed out
  std::vector<Tensor> lent_;                         // made on memory of the host while this is recorded
  std::vector<SizeFact> data_facts_;                 // answers about sizes that the data decides, on this way through the tree
  std::vector<std::pair<Dim, std::source_location>> asked_;  // sizes, and where the user last asked for them
  std::optional<Tensor> seed_;                       // of the present segment
  std::vector<double> read_numbers_;                 // as this call has read them
  std::vector<Sharing> sharings_;
  std::vector<GradSharing> grad_sharings_;
  TensorList written_captured_;
  bool writes_arguments_ = false;
  struct GradChange {
    Tensor leaf, before;  // an eager leaf, and the gradient that it had
    Storage* storage;
  };
  std::vector<GradChange> grad_changes_;
  std::map<const TensorImpl*, Storage*> leaf_roots_;  // the stand-ins of leaves in the present segment
  std::vector<Storage*> changed_grads_;               // of stand-ins
};

}  // namespace sinter::capture
