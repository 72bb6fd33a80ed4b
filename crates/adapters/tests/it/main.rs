//! The adapters against what the real agents wrote, and against files written by hand.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod bad_input;
mod claude_calls;
mod claude_counts;
mod claude_kept;
mod claude_large;
mod claude_oracle;
mod claude_progress;
mod claude_prompts;
mod claude_properties;
mod claude_requests;
mod claude_rules;
mod claude_sessions;
mod claude_shapes;
mod claude_subagents;
mod claude_turns;
mod claude_unknown;
mod codex_app_rules;
mod codex_calls;
mod codex_ends;
mod codex_files;
mod codex_oracle;
mod codex_properties;
mod codex_requests;
mod codex_robust;
mod codex_rules;
mod codex_shapes;
mod codex_twins;
mod codex_usage;
mod codex_waiting;
mod complete_entries;
mod conversations;
mod denials;
mod golden_pairs;
mod made;
mod odd;
mod reading;
mod rewriting;
mod same_entries;
