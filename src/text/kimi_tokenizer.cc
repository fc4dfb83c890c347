#include "text/kimi_tokenizer.h"

#include <utility>

#include "text/byte_pair_tokenizer.h"
#include "text/kimi_pattern.h"

namespace deltafin::text {

Result<std::unique_ptr<Tokenizer>> make_kimi_tokenizer(RankTable ranks,
                                                       ControlTokens control_tokens) {
  TRY(SplitPattern pattern, SplitPattern::compile(kimi_split_pattern(), SplitOptions{}));
  return std::make_unique<BytePairTokenizer>(TokenizerParts{
      .vocabulary = std::make_unique<RankVocabulary>(std::move(ranks)),
      .control_tokens = std::move(control_tokens),
      .shown_control_tokens = {},
      .cuts = LongTextCuts{},
      .normalization = Normalization::None,
      .pattern = std::move(pattern),
  });
}

}  // namespace deltafin::text
