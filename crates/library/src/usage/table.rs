//! Usage as rows: grouped, with its cost, and the agent's own figure where there is one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use jiff::tz::TimeZone;
use steno_index::contains_part;
use steno_model::RunId;
use steno_model::json::{ObjectWriter, RawJson};
use steno_session::usage::{CountedUsage, Dollars, TokenUsage, UsageRecord};
use steno_views::cost::{Cost, Prices};

use super::columns::{ColumnValues, UsageColumn};

/// Selects usage, and groups it in rows.
#[derive(Clone, Debug)]
pub struct UsageQuery {
    /// The columns to group by.
    pub by: Vec<UsageColumn>,
    /// Only usage of these sessions and models.
    pub only: UsageFilter,
    /// The first millisecond since 1970.
    pub since_ms: Option<i64>,
    /// The first millisecond after the end.
    pub until_ms: Option<i64>,
    /// The time zone of days, weeks, months and windows.
    pub zone: TimeZone,
}

/// Selects usage of some sessions and models. An empty filter selects all.
#[derive(Clone, Debug, Default)]
pub struct UsageFilter {
    /// Only sessions of a project whose path contains this.
    pub project: Option<String>,
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// Only models whose names contain this.
    pub model: Option<String>,
    /// Only sessions on this branch.
    pub branch: Option<String>,
}

/// A row.
#[derive(Clone, Debug, Default)]
pub struct UsageRow {
    /// The values of the columns, empty where no record says it.
    pub group: Vec<(UsageColumn, String)>,
    /// The title of its session, if it has only one and that is known.
    pub title: Option<String>,
    /// How many sessions used it.
    pub sessions: usize,
    /// The tokens.
    pub used: TokenUsage,
    /// What they cost at list prices.
    pub cost: Cost,
    /// What they cost according to the agents; `None` if no agent says it.
    pub agent_cost: Option<AgentCost>,
}

/// What usage costs according to agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCost {
    /// The sum of their figures.
    pub dollars: Dollars,
    /// Whether a part of the row has no figure, or one that also belongs to other rows.
    pub is_partial: bool,
}

/// The rows, in order, and their total.
#[derive(Clone, Debug, Default)]
pub struct UsageTable {
    /// The rows.
    pub rows: Vec<UsageRow>,
    /// All of them together.
    pub total: UsageRow,
    /// What windows leave out: the usage of agents other than Claude Code. Without windows it is empty.
    pub outside_windows: UsageRow,
}

impl UsageTable {
    /// Groups usage. A column that is named twice counts once. By windows, only Claude's usage counts. Times are in
    /// order; everything else is ordered by cost, the highest first.
    #[must_use]
    pub fn of(counted: &CountedUsage, query: &UsageQuery, prices: &Prices) -> Self {
        let mut by = Vec::new();
        for column in &query.by {
            if !by.contains(column) {
                by.push(*column);
            }
        }
        let values = ColumnValues::new(counted, &query.zone);
        let all = Units::of(counted, counted.records.iter());
        let mut groups = BTreeMap::<Vec<(UsageColumn, String)>, Vec<&UsageRecord>>::new();
        let is_asked =
            |record: &&UsageRecord| query.is_in_time(record) && query.only.accepts(record, &values);
        let has_windows = by.contains(&UsageColumn::Window);
        let mut outside = Vec::new();
        for record in counted.records.iter().filter(is_asked) {
            if has_windows && record.provider != "claude" {
                outside.push(record);
                continue;
            }
            let group = by.iter().map(|column| (*column, values.of(*column, record))).collect();
            groups.entry(group).or_default().push(record);
        }
        let total = groups.values().flatten().copied().collect::<Vec<_>>();
        let row = |(group, records): (Vec<_>, Vec<&UsageRecord>)| UsageRow::of(group, &records, &all, prices);
        let (total, outside_windows) = (row((Vec::new(), total)), row((Vec::new(), outside)));
        let mut rows: Vec<UsageRow> = groups.into_iter().map(row).collect();
        order(&mut rows);
        Self { rows, total, outside_windows }
    }

    /// Marks all rows as lower bounds.
    pub fn mark_incomplete(&mut self) {
        for row in self.rows.iter_mut().chain([&mut self.total, &mut self.outside_windows]) {
            row.used.is_lower_bound = true;
            row.cost.is_lower_bound = true;
        }
    }
}

impl UsageQuery {
    fn is_in_time(&self, record: &UsageRecord) -> bool {
        let is_limited = self.since_ms.is_some() || self.until_ms.is_some();
        match record.at_ms {
            Some(at) => {
                self.since_ms.is_none_or(|since| at >= since) && self.until_ms.is_none_or(|until| at < until)
            }
            None => !is_limited,
        }
    }
}

impl UsageFilter {
    /// Tells whether every record passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        [&self.project, &self.agent, &self.model, &self.branch].into_iter().all(Option::is_none)
    }

    fn accepts(&self, record: &UsageRecord, values: &ColumnValues<'_>) -> bool {
        let is_in = |wanted: &Option<String>, column: UsageColumn, accepts: fn(&str, &str) -> bool| {
            wanted.as_deref().is_none_or(|wanted| accepts(&values.of(column, record), wanted))
        };
        is_in(&self.project, UsageColumn::Project, contains_part)
            && is_in(&self.agent, UsageColumn::Agent, str::eq_ignore_ascii_case)
            && is_in(&self.model, UsageColumn::Model, contains_part)
            && is_in(&self.branch, UsageColumn::Branch, |own, wanted| own == wanted)
    }
}

impl UsageRow {
    fn of(
        group: Vec<(UsageColumn, String)>,
        records: &[&UsageRecord],
        all: &Units<'_>,
        prices: &Prices,
    ) -> Self {
        let mut row = Self { group, ..Self::default() };
        for record in records {
            row.used.add(record.used);
            row.cost.add_usage(prices, &record.model);
        }
        let units = Units::of(all.counted, records.iter().copied());
        row.sessions = units.sessions.len();
        row.agent_cost = units.agent_cost(all);
        row
    }

    /// Returns it as JSON.
    #[must_use]
    pub fn json(&self) -> RawJson {
        RawJson::object(|object: &mut ObjectWriter<'_>| {
            for (column, value) in &self.group {
                object.json(column.name(), &name_json(value));
            }
            if let Some(title) = &self.title {
                object.json("title", &RawJson::string(title));
            }
            object.number("sessions", self.sessions as u64);
            self.used.write(object);
            cost_fields(object, &self.cost);
            let agent = self.agent_cost.map(|cost| decimal(cost.dollars));
            object.json("agent_cost_usd", &agent.unwrap_or_else(RawJson::null));
            if let Some(cost) = self.agent_cost {
                object.json("agent_cost_whole", &RawJson::from(!cost.is_partial));
            }
        })
    }
}

/// Writes a cost: the known part, whether that is all, and the models without a price.
fn cost_fields(object: &mut ObjectWriter<'_>, cost: &Cost) {
    object.json("cost_usd", &cost.known().map_or_else(RawJson::null, decimal));
    object.json("cost_exact", &RawJson::from(!cost.is_lower_bound));
    object.json("unpriced_models", &unpriced_models(cost));
}

/// Returns the models without a price as JSON. Null stands for responses without a model.
pub(crate) fn unpriced_models(cost: &Cost) -> RawJson {
    RawJson::array(cost.unpriced.iter().map(|model| name_json(model)))
}

/// Returns a name as JSON; null if no record says it.
fn name_json(name: &str) -> RawJson {
    if name.is_empty() { RawJson::null() } else { RawJson::string(name) }
}

/// Orders rows by their columns, from the first to the last. Rows without a price are compared by tokens.
fn order(rows: &mut [UsageRow]) {
    let mut sums = BTreeMap::<Vec<(UsageColumn, String)>, (u128, u64)>::new();
    for row in rows.iter() {
        for len in 1..=row.group.len() {
            let (units, tokens) = sums.entry(row.group[..len].to_vec()).or_default();
            *units = units.saturating_add(row.cost.dollars.units());
            *tokens = tokens.saturating_add(row.used.tokens.total());
        }
    }
    rows.sort_by_cached_key(|row| {
        let key = |len: usize| {
            let (column, name) = row.group[len - 1].clone();
            let sum = if column.is_time() { (0, 0) } else { sums[&row.group[..len]] };
            (Reverse(sum), name)
        };
        (1..=row.group.len()).map(key).collect::<Vec<_>>()
    });
}

fn decimal(dollars: Dollars) -> RawJson {
    RawJson::parse(&dollars.decimal()).unwrap_or_else(|_| RawJson::null())
}

/// How many records each session, and each of its models, has in a row or in all usage.
struct Units<'a> {
    counted: &'a CountedUsage,
    sessions: HashMap<RunId, usize>,
    models: HashMap<RunId, HashMap<&'a str, usize>>,
    /// The figures of single responses.
    responses: HashMap<RunId, (Dollars, bool)>,
}

impl<'a> Units<'a> {
    fn of(counted: &'a CountedUsage, records: impl Iterator<Item = &'a UsageRecord>) -> Self {
        let (sessions, models, responses) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut units = Self { counted, sessions, models, responses };
        for record in records {
            *units.sessions.entry(record.session).or_default() += 1;
            let models = units.models.entry(record.session).or_default();
            *models.entry(&*record.model.model).or_default() += 1;
            if let Some(cost) = record.agent_cost {
                let (sum, _) = units.responses.entry(record.session).or_default();
                *sum = sum.plus(cost);
            } else if let Some((_, is_partial)) = units.responses.get_mut(&record.session) {
                *is_partial = true;
            }
        }
        units
    }

    /// Returns the figures of agents for a row. A session's total counts if the row has all of the session. Otherwise
    /// the total of a model counts, if the row has all that the session used of the model.
    fn agent_cost(&self, all: &Units<'_>) -> Option<AgentCost> {
        let mut cost = AgentCost::default();
        let mut is_any = false;
        let mut add = |dollars: Dollars| {
            is_any = true;
            cost.dollars = cost.dollars.plus(dollars);
        };
        let mut is_partial = false;
        for (session, records) in &self.sessions {
            let costs = self.counted.sessions.get(session).map(|session| &session.agent_costs);
            match costs.filter(|costs| !costs.is_empty()) {
                Some(costs) if all.sessions.get(session) == Some(records) => {
                    add(costs.values().copied().fold(Dollars::default(), Dollars::plus));
                }
                Some(costs) => {
                    for (model, records) in self.models.get(session).into_iter().flatten() {
                        let of_all = all.models.get(session).and_then(|models| models.get(model));
                        let is_whole = of_all == Some(records);
                        match costs.get(*model).filter(|_| is_whole) {
                            Some(cost) => add(*cost),
                            None => is_partial = true,
                        }
                    }
                }
                None => match self.responses.get(session) {
                    Some((sum, is_part)) => {
                        add(*sum);
                        is_partial |= *is_part;
                    }
                    None => is_partial = true,
                },
            }
        }
        is_any.then_some(AgentCost { is_partial, ..cost })
    }
}
