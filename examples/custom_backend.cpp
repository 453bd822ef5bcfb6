// A backend of your own: it is given each captured graph and returns a function that runs it.
#include <sinter/graph/run.h>
#include <sinter/sinter.h>

#include <iostream>
#include <map>

using namespace sinter;

int main() {
  std::map<std::string, int> ops;  // in all captured graphs
  int calls = 0;
  register_backend("counting", [&](const Graph& graph) -> GraphFunction {
    std::cout << graph.text() << "\n";
    for (auto& node : graph.nodes()) ++ops[std::string(node.op->name)];
    // A real backend would translate the graph; this one runs it op by op. The graph outlives the function returned.
    return [&calls, &graph](std::span<const TensorArg> inputs) {
      ++calls;
      return run_graph(graph, inputs);
    };
  });

  auto f = [](const Tensor& x) { return softmax(relu(x) * 2, -1); };
  auto counted = compile(f, {.backend = "counting"});
  Tensor x = linspace(-1, 1, 12).view({3, 4});
  counted(x);
  Tensor y = counted(x);
  for (auto& [name, count] : ops) std::cout << name << ": " << count << "\n";
  double difference = (y - f(x)).abs().amax().item<double>();
  return difference < 1e-6 && calls == 2 && ops["relu"] == 1 ? 0 : 1;
}
