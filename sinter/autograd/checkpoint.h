#pragma once
// What the tape has of a call of checkpoint(): how to run the function again. The ops of the first run keep nothing; each takes
// what it needs from the op of the second run that was recorded in its place.
#include "sinter/autograd/autograd.h"
#include "sinter/autograd/node.h"
#include "sinter/ops/creation.h"

namespace sinter::autograd {

class Checkpoint final : public RefCounted {
 public:
  Checkpoint(std::function<void()> again, const TensorList& arguments);

  // An op was recorded on this thread, inside a checkpoint or not.
  static void note(const IntrusivePtr<OpNode>& node);

  // What the second run has recorded as this item. It runs when the first is asked for.
  IntrusivePtr<OpNode> op_again(size_t index);

 private:
  friend class CheckpointScope;
  // An op, or a call of checkpoint() inside this one.
  struct Item {
    IntrusivePtr<OpNode> node;
    IntrusivePtr<Checkpoint> inner;
  };

  struct Again {
    std::function<void()> run;
    std::vector<Saved> arguments;
  };

  // The call is the `index`th item of another. What it runs on is not kept either: the second run of that one tells.
  void wait_for(IntrusivePtr<Checkpoint> outer, size_t index);
  Item& item_again(size_t index);
  void run_again();

  Again again_;
  IntrusivePtr<Checkpoint> outer_;
  size_t index_ = 0;
  const Generator::Draw draws_;
  const int64_t autocast_;
  size_t count_ = 0;         // items of the first run
  std::vector<Item> items_;  // of the second
};

}  // namespace sinter::autograd
