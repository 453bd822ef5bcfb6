#include "bench/support/serve.h"

#include <iostream>
#include <sstream>

namespace sinter::bench {

int serve(const std::function<Json(const std::string& name, double least)>& answer) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name;
    double least = 0.02;
    words >> name >> least;
    Json reply;
    try {
      reply = answer(name, least);
    } catch (const std::exception& e) {
      reply = {{"program", name}, {"failed", e.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
  return 0;
}

}  // namespace sinter::bench
