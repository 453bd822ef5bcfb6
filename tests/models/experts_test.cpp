// What a step of experts reads, and that both ways of computing them agree.
#include <gtest/gtest.h>

#include "sinter/capture/compiler.h"
#include "sinter/engine/report.h"
#include "sinter/models/models.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "tests/support/distance.h"
#include "tests/support/error_of.h"

namespace sinter::models {
namespace {

constexpr int64_t kHidden = 128, kWidth = 256, kExperts = 16, kChosen = 2;
constexpr int64_t kExpertBytes = 3 * kHidden * kWidth * 4;

std::shared_ptr<CausalLM> make_model(int64_t chosen = kChosen) {
  manual_seed(11);
  return causal_lm(from_config(ConfigFile::parse(
      format(
          R"({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": {}, "intermediate_size": {},
                 "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1, "vocab_size": 64,
                 "max_position_embeddings": 64, "num_local_experts": {}, "num_experts_per_tok": {}})",
          kHidden, kWidth, kExperts, chosen),
      "config.json")));
}

Tensor ids(int64_t rows) { return arange(3, 3 + rows, kInt64).view({rows, 1}); }

TEST(Experts, AStepReadsTheChosenOnesAlone) {
  auto model = make_model();
  auto step = compile([model](const Tensor& ids, const Tensor& positions,
                              KvCache cache) { return model->forward(ids, positions, {}, &cache); },
                      {.fullgraph = true});
  for (int64_t rows : {1, 3}) {
    KvCache cache = model->make_cache(rows, 16);
    step(ids(rows), tensor({0}), cache);
    auto report = capture::explain(step.function()).programs.back().reports.at(0);
    ASSERT_TRUE(report);
    // Beside them there are attention, embedding and head: less than two experts.
    EXPECT_LT(report->total().bytes(), (rows * kChosen + 2) * kExpertBytes) << report->text();
    EXPECT_LT(report->arena_bytes, kExpertBytes / 3) << "matrices are not copied\n" << report->text();
  }
}

// Few rows go one way, many the other.
TEST(Experts, BothWaysAgree) {
  auto model = make_model();
  Tensor together = model->forward(ids(32));
  for (int64_t row : {0, 7, 31})
    EXPECT_LT(distance(model->forward(ids(32).slice(0, row, row + 1))[0], together[row]), 1e-5);
}

TEST(Experts, MoreThanThereAreCannotBeChosen) {
  EXPECT_NE(message_of([] { make_model(17); }).find("chooses 17 of 16 experts"), std::string::npos);
}

}  // namespace
}  // namespace sinter::models
