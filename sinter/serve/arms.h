#pragma once
// Engines that answer side by side and are compared while they do: two ways to run a model, two precisions of it.
#include <string>
#include <vector>

#include "sinter/serve/engine.h"

namespace sinter::serve {

struct Arm {
  std::string name;
  double share;  // of the traffic, in proportion to the others'
  Engine* engine;
};

class Arms {
 public:
  // An Error where there is none, where two have one name, or a share is not positive.
  explicit Arms(std::vector<Arm> arms);

  const std::vector<Arm>& all() const { return arms_; }
  bool are_compared() const { return arms_.size() > 1; }
  // The same key has the same arm always; keys are spread by the shares.
  const Arm& of_key(const std::string& key) const;
  // Null: there is none of this name.
  const Arm* named(const std::string& name) const;
  // All of them at once.
  bool are_ready() const;
  void close();
  std::string metrics_text() const;

  // How they do, as JSON: times and their intervals of each, and for each but the first a verdict in a sentence.
  std::string report() const;

 private:
  std::vector<Arm> arms_;
};

// "compiled:90" as a name and a share; an Error where it is not one.
std::pair<std::string, double> parse_arm(const std::string& text);

}  // namespace sinter::serve
