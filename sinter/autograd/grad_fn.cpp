// The recorded graph as users see it.
#include <ostream>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/node.h"

namespace sinter::autograd {

GradFn::GradFn(const Edge& edge) : edge_(edge ? std::make_shared<const Edge>(edge) : nullptr) {}

std::string GradFn::name() const {
  if (!edge_) return "none";
  return edge_->node ? edge_->node->name() : "AccumulateGrad";
}

std::string GradFn::text() const { return edge_ && edge_->node ? edge_->node->text() : name(); }

std::vector<GradFn> GradFn::next_functions() const {
  std::vector<GradFn> next;
  if (edge_ && edge_->node)
    for (auto& edge : edge_->node->edges()) next.emplace_back(edge);
  return next;
}

std::ostream& operator<<(std::ostream& out, const GradFn& fn) { return out << fn.text(); }

}  // namespace sinter::autograd
