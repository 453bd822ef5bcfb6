#pragma once
// A segment: the part of a captured program between two questions that only the host can answer. Segments form a tree
// whose edges are the answers; a program without questions is a tree of one. All plain data.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sinter/engine/executable.h"
#include "sinter/graph/graph.h"
#include "sinter/ops/view.h"
#include "sinter/ops/view_path.h"

namespace sinter::capture {

// Programs take and give complex tensors as pairs of real numbers.
inline Tensor in_pairs(const Tensor& tensor) { return is_complex(tensor.dtype()) ? view_as_real(tensor) : tensor; }

// The tensors of a call live in cells, numbered in the order in which the program meets them. Where a cell's tensor comes
// from when it is first met:
struct CellSource {
  enum class Kind : uint8_t {
    kArgument,  // the n-th tensor of the arguments
    kMemory,    // all the memory behind the n-th tensor of the arguments, as one row: arguments overlap
    kCaptured,  // this very tensor
    kConstant,  // a tensor that the program makes of the host's numbers; a copy where it is written to
    kGrad,      // the gradient of the tensor in cell n
    kMade       // a result of a segment
  };
  Kind kind = Kind::kMade;
  int index = -1;
  Tensor tensor;
  std::string name;  // for people: "x", "captured 2"
  bool unread = false;        // kGrad: the program asks whether there is one, and no more
  bool only_operand = false;  // kArgument: read by operands of this segment alone, which take the argument itself
};

// One operand of a segment's graph.
struct InputSource {
  enum class Kind : uint8_t { kCell, kSize, kNumber, kSeed, kOffset, kTensor, kHost, kRead };
  Kind kind = Kind::kCell;
  // The cell; the number among the arguments, of the host or among those it reads; how many draws of the segment come before.
  int index = 0;
  Dim size = {};  // kSize
  DType dtype = kInt64;  // kNumber: how its bits are read
  Tensor tensor = {};    // kTensor: this very one, which only a gradient reads
  int argument = -1;     // kCell: the tensor of the arguments that it is, where nobody else needs the cell
};

// A number that the host computed in the call and that is a value of the graph: see host_numbers.h.
struct HostNumber {
  uint64_t point = 0;  // of the program, where it is taken
  Scalar value;        // when captured; a function that is called every time gives another
  std::string where;   // the user's line
};

// One result of a segment's graph.
struct OutputTarget {
  int cell = -1;
  bool written = false;  // the cell had a tensor already, whose memory now holds the result
  IntList order = {};    // the dimensions from the outermost in memory to the innermost, as eager would lay it out
  bool differentiable = false;
  bool forgets = false;  // written over as a whole: what the tensor was before is no part of its history
  bool complex = false;  // the cell has a complex tensor, the graph gives its pairs
};

// What the host does before a segment runs: one of the two.
struct HostAction {
  std::function<void()> apply;   // a change of its state
  std::function<double()> read;  // the next of the numbers that operands are
};

// Whether a leaf has a gradient when the program begins.
struct GradRead {
  CellSource leaf;
  bool present = false;
};

// A tensor that the function reaches by itself lies in the memory of an argument, or is that argument.
struct Sharing {
  int argument = -1;
  Tensor captured;
  bool same = false;
};

// The gradient of a leaf lies in the memory of an argument or of a tensor that the function reaches by itself, or is it.
struct GradSharing {
  CellSource leaf;
  int argument = -1;  // -1: `captured`
  Tensor captured;
  bool same = false;
};

// Why a segment ends.
struct Question {
  enum class Kind : uint8_t { kReturn, kTruth, kNumber, kSize, kMemory };
  Kind kind = Kind::kReturn;
  std::string what;   // "item", "data_ptr", "nonzero"
  std::string where;  // the user's line
  int output = -1;    // kTruth, kNumber: which result holds the answer
  DimCompare compare = DimCompare::kEqual;  // kSize
  Dim a = {}, b = {};
};

// How one tensor of the results is found.
struct ResultTensor {
  int cell = -1;  // -1: undefined
  ViewPath path = {};
  bool detached = false;
  int same_as = -1;  // an earlier result, which is the same tensor
};

// What a leaf has as its gradient in the end.
struct GradEffect {
  int leaf_cell = -1;
  ResultTensor grad;
  bool replaces = false;  // the one before is not read: it may go before the segment runs
};

// The compiled backward of a segment. It is apart from the segment because histories own it: a segment owns the tensors
// that the function captures, and one of these may be what has the history.
struct Backward {
  std::shared_ptr<Executable> run;  // null: no result has a gradient, and the failures say why
  struct Saved {
    int input = -1, output = -1;  // an operand or a result of the forward graph
  };
  std::vector<Saved> saved;
  std::vector<int> targets;   // for each gradient the operand of the forward graph that it belongs to
  std::vector<int> tangents;  // the differentiable results of the forward graph, in order
  std::vector<std::vector<bool>> follows;  // for each gradient which of them lead to it
  std::vector<std::vector<bool>> meet;  // for each two of these whether an op has a part in both
  std::vector<std::string> failures;    // for each of these: why it has no gradient, or empty
  std::map<std::string, int> sizes;     // of a symbol: its place among the sizes that the executables are told
  std::vector<Type> operands;  // of `run`: what is saved, then the tangents
  std::string text;
  // The gradients as recorded, before the program was cut in two: what a gradient that is differentiated again is
  // computed by. Its operands are some of the forward graph's, then the tangents.
  Graph whole;
  std::vector<int> reads;

  // The gradients where some tangents are undefined: made when they are first asked for.
  Executable& part(const std::vector<bool>& flowing) const;
  // By gradient, whether one of these tangents leads to it.
  std::vector<bool> reached(const std::vector<bool>& flowing) const;
  std::function<std::shared_ptr<Executable>(Graph graph, bool op_by_op)> make;

 private:
  mutable std::mutex making_;
  mutable std::map<std::vector<bool>, std::shared_ptr<Executable>> parts_;
};

struct Segment {
  int number = 0;    // in the order of capture
  std::string text;  // the graph as captured, with the user's lines
  int ops = 0;
  uint64_t hash = 0;  // of what it computes, reads and leaves
  uint64_t paths = 0;  // of how gradients flow through that: what a NoGradGuard covers looks the same in the graph
  std::vector<std::pair<int, CellSource>> bound;  // cells that the program reads first here
  std::vector<InputSource> inputs;
  std::vector<HostNumber> host_numbers;
  std::vector<OutputTarget> outputs;
  std::vector<GradEffect> grads;
  std::vector<GradRead> grad_reads;
  int64_t draws = 0;
  std::vector<HostAction> actions;  // in order; only of a program of one segment
  // Sizes that its results tell: the place of a symbol, the result and its dimension.
  struct Told {
    int place, output, dim;
  };
  std::vector<Told> data_sizes;
  std::map<std::string, int> places;  // of the symbols
  std::vector<int> takes;             // places of the sizes that the executables are told
  std::shared_ptr<Executable> run;
  StoredGraph stored;            // its graph in the store
  size_t saved_outputs = 0;  // results of the executable beyond those of the graph, kept for the backward
  std::shared_ptr<const Backward> backward;  // where a result is differentiable

  Question question;
  std::map<int64_t, std::shared_ptr<Segment>> edges;  // by the bits of the answer
  // Where the segment is the last one.
  std::vector<ResultTensor> results;
  std::vector<Dim> result_sizes;
  std::vector<int> result_numbers;  // for each Scalar of the result: its place in `results`, or -1: as in the prototype
  std::shared_ptr<const void> prototype;  // the function's result, tensors left out
};

}  // namespace sinter::capture
