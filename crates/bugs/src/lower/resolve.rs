//! Resolves the names of the syntax tree, with all checks that do not need data.

use super::ir::{Block, Kind, Node, NodeKind, Reference, Relation, Restriction, Statement};
use super::{names, suggest};
use crate::data::Data;
use crate::diagnostic::Diagnostic;
use crate::syntax::ast::{self, Expression, ExpressionKind, Operator};
use crate::syntax::{Dialect, Span};
use hyperprior_graph::Function;
use std::collections::{HashMap, HashSet};

/// A name of the program and its uses.
#[derive(Debug, Clone)]
pub(super) struct Symbol {
    pub name: String,
    /// Whether it is in the data.
    pub given: bool,
    /// Where it is first defined.
    pub defined: Option<Span>,
    /// Whether its first definition is by a distribution.
    pub drawn: bool,
    /// Whether something is calculated from it.
    pub read: bool,
    /// Whether it has brackets on some left side.
    pub indexed: bool,
}

pub(super) struct Resolver {
    pub symbols: Vec<Symbol>,
    pub numbers: HashMap<String, usize>,
    pub diagnostics: Vec<Diagnostic>,
    /// Names already reported as undefined.
    undefined: HashSet<String>,
    dialect: Dialect,
    counters: Vec<String>,
    block: Block,
}

impl Resolver {
    pub fn new(data: &Data, dialect: Dialect) -> Self {
        let mut resolver = Self {
            symbols: Vec::new(),
            numbers: HashMap::new(),
            diagnostics: Vec::new(),
            undefined: HashSet::new(),
            dialect,
            counters: Vec::new(),
            block: Block::default(),
        };
        for name in data.arrays.keys() {
            let number = resolver.symbol(name);
            resolver.symbols[number].given = true;
        }
        resolver
    }

    /// The number of a name.
    pub fn symbol(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        self.numbers.insert(name.to_string(), self.symbols.len());
        self.symbols.push(Symbol {
            name: name.to_string(),
            given: false,
            defined: None,
            drawn: false,
            read: false,
            indexed: false,
        });
        self.symbols.len() - 1
    }

    /// Resolves a block. All its definitions are collected before its expressions are resolved.
    pub fn block(&mut self, relations: &[ast::Relation]) -> Block {
        self.define(relations);
        let statements = self.statements(relations);
        let mut block = std::mem::take(&mut self.block);
        block.statements = statements;
        block
    }

    /// Ends a block: its definitions are data for the next.
    pub fn close_block(&mut self) {
        for symbol in &mut self.symbols {
            symbol.given |= symbol.defined.take().is_some();
            symbol.indexed = false;
        }
    }

    fn define(&mut self, relations: &[ast::Relation]) {
        for relation in relations {
            let (target, drawn) = match relation {
                ast::Relation::For(inner) => {
                    self.define(&inner.body);
                    continue;
                }
                ast::Relation::Deterministic(r) => (&r.target, false),
                ast::Relation::Stochastic(r) => (&r.target, true),
            };
            let number = self.symbol(&target.name.text);
            let symbol = &mut self.symbols[number];
            if symbol.defined.is_none() {
                (symbol.defined, symbol.drawn) = (Some(target.span), drawn);
            }
            symbol.indexed |= target.indices.is_some();
        }
    }

    fn statements(&mut self, relations: &[ast::Relation]) -> Vec<Statement> {
        let mut statements = Vec::new();
        for relation in relations {
            match relation {
                ast::Relation::For(inner) => {
                    let range = self.node(&inner.range);
                    self.counters.push(inner.counter.text.clone());
                    let body = self.statements(&inner.body);
                    self.counters.pop();
                    if let Some(range) = range {
                        statements.push(Statement::Loop { counter: inner.counter.text.clone(), range, body });
                    }
                }
                ast::Relation::Deterministic(r) => {
                    let target = self.target(&r.target);
                    let value = self.node(&r.value);
                    let kind = value.map(|value| Kind::Value { link: r.link, value });
                    self.relation(target, kind, r.span, &mut statements);
                }
                ast::Relation::Stochastic(r) => {
                    let target = self.target(&r.target);
                    let kind = self.distribution(r);
                    self.relation(target, kind, r.span, &mut statements);
                }
            }
        }
        statements
    }

    fn relation(&mut self, target: Option<Reference>, kind: Option<Kind>, span: Span, into: &mut Vec<Statement>) {
        if let (Some(target), Some(kind)) = (target, kind) {
            into.push(Statement::Relation(self.block.relations.len()));
            self.block.relations.push(Relation { target, kind, span, counters: self.counters.clone() });
        }
    }

    fn target(&mut self, target: &ast::Variable) -> Option<Reference> {
        if self.counters.contains(&target.name.text) {
            let message = format!("the counter `{}` cannot be defined again", target.name.text);
            self.diagnostics.push(
                Diagnostic::error(message, target.span)
                    .label("a counter of a loop")
                    .hint("use another name for one of them"),
            );
            return None;
        }
        let array = self.symbol(&target.name.text);
        let indices = self.indices(&target.indices)?;
        Some(Reference { array, indices, span: target.span })
    }

    #[allow(clippy::type_complexity)]
    fn indices(&mut self, indices: &Option<Vec<Option<Expression>>>) -> Option<Option<Vec<Option<Node>>>> {
        let Some(indices) = indices else { return Some(None) };
        // Resolve every index, so that every error is found.
        let resolved: Vec<Option<Option<Node>>> =
            indices.iter().map(|index| index.as_ref().map_or(Some(None), |e| self.node(e).map(Some))).collect();
        resolved.into_iter().collect::<Option<Vec<_>>>().map(Some)
    }

    fn nodes(&mut self, expressions: &[Expression]) -> Option<Vec<Node>> {
        let resolved: Vec<Option<Node>> = expressions.iter().map(|e| self.node(e)).collect();
        resolved.into_iter().collect()
    }

    fn distribution(&mut self, relation: &ast::Stochastic) -> Option<Kind> {
        let parameters = self.nodes(&relation.parameters);
        let bound = |resolver: &mut Self, e: &Option<Expression>| match e {
            Some(e) => resolver.node(e).map(Some),
            None => Some(None),
        };
        let restriction = match &relation.restriction {
            None => None,
            Some(r) => {
                let (lower, upper) = (bound(self, &r.lower), bound(self, &r.upper));
                Some(Restriction { kind: r.kind, lower: lower?, upper: upper?, span: r.span })
            }
        };
        let name = &relation.distribution;
        let Some((family, wanted)) = names::distribution(&name.text) else {
            self.unknown_distribution(name);
            return None;
        };
        if family == names::Family::Hypergeometric && self.dialect == Dialect::OpenBugs {
            self.diagnostics.push(
                Diagnostic::error("dhyper is not supported in the OpenBUGS dialect", name.span)
                    .label("its parameters differ from those in JAGS")
                    .hint("use the JAGS dialect, where it is dhyper(n1, n2, m1, psi)"),
            );
            return None;
        }
        if wanted.len() != relation.parameters.len() {
            let count = |n: usize| if n == 1 { "1 parameter".to_string() } else { format!("{n} parameters") };
            let message = format!(
                "{} takes {}, but {} given",
                name.text,
                count(wanted.len()),
                match relation.parameters.len() {
                    0 => "none is".to_string(),
                    1 => "1 is".to_string(),
                    n => format!("{n} are"),
                }
            );
            let diagnostic = Diagnostic::error(message, relation.span).label("here");
            self.diagnostics.push(diagnostic.hint(format!("write `{}({})`", name.text, wanted.join(", "))));
            return None;
        }
        if let Some(at) = family.precision()
            && let ExpressionKind::Variable(variable) = &relation.parameters[at].kind
            && suggest::suggests_spread(&variable.name.text)
        {
            let spread = &variable.name.text;
            self.diagnostics.push(
                Diagnostic::warning(
                    format!("{} takes a precision, not a standard deviation", name.text),
                    variable.span,
                )
                .label(format!("`{spread}` is used as a precision, 1/variance"))
                .hint(format!("if `{spread}` is a standard deviation, write `pow({spread}, -2)` instead")),
            );
        }
        Some(Kind::Distribution { family, parameters: parameters?, restriction })
    }

    fn unknown_distribution(&mut self, name: &ast::Name) {
        let text = &name.text;
        let (message, label, hint) = if let Some(way) = suggest::unsupported_distribution(text) {
            (format!("the distribution `{text}` is not supported"), "cannot be used here", way.to_string())
        } else if names::function(text).is_some() {
            (
                format!("`{text}` is a function, not a distribution"),
                "a function",
                "define a value with `<-`".to_string(),
            )
        } else {
            (format!("there is no distribution `{text}`"), "unknown distribution", suggest::distribution_hint(text))
        };
        self.diagnostics.push(Diagnostic::error(message, name.span).label(label).hint(hint));
    }

    fn node(&mut self, expression: &Expression) -> Option<Node> {
        let call = |function, arguments| NodeKind::Call { function: names::Builtin::Elementwise(function), arguments };
        let kind = match &expression.kind {
            ExpressionKind::Number(x) => NodeKind::Number(*x),
            ExpressionKind::Variable(variable) => self.variable(variable)?,
            ExpressionKind::Call { function, arguments } => self.call(function, arguments, expression.span)?,
            ExpressionKind::Negate(inner) => match &inner.kind {
                ExpressionKind::Number(x) => NodeKind::Number(-x),
                _ => call(Function::Negate, vec![self.node(inner)?]),
            },
            ExpressionKind::Not(inner) => call(Function::Not, vec![self.node(inner)?]),
            ExpressionKind::Binary { operator, left, right } => {
                let (left, right) = (self.node(left), self.node(right));
                call(elementwise(*operator), vec![left?, right?])
            }
            ExpressionKind::Range { from, to } => {
                let (from, to) = (self.node(from), self.node(to));
                NodeKind::Range { from: Box::new(from?), to: Box::new(to?) }
            }
            ExpressionKind::Chain { first, rest } => self.chain(first, rest)?,
        };
        Some(Node { kind, span: expression.span })
    }

    fn chain(&mut self, first: &Expression, rest: &[(Operator, Expression)]) -> Option<NodeKind> {
        let first = self.node(first);
        let rest: Vec<(Operator, Option<Node>)> = rest.iter().map(|(o, e)| (*o, self.node(e))).collect();
        let first = first?;
        let rest: Vec<(Operator, Node)> = rest.into_iter().map(|(o, e)| e.map(|e| (o, e))).collect::<Option<_>>()?;
        let signed = |first: Node, rest: Vec<(Operator, Node)>, turned: Operator| {
            std::iter::once((false, first)).chain(rest.into_iter().map(|(o, e)| (o == turned, e))).collect()
        };
        Some(match rest.first().map(|(operator, _)| *operator) {
            Some(Operator::Add | Operator::Subtract) => NodeKind::Sum(signed(first, rest, Operator::Subtract)),
            Some(Operator::Multiply | Operator::Divide) => NodeKind::Product(signed(first, rest, Operator::Divide)),
            operator => {
                let operands = std::iter::once(first).chain(rest.into_iter().map(|(_, e)| e)).collect();
                match operator {
                    Some(Operator::MatrixMultiply) | None => NodeKind::MatrixProduct(operands),
                    Some(operator) => NodeKind::Logic { function: elementwise(operator), operands },
                }
            }
        })
    }

    fn variable(&mut self, variable: &ast::Variable) -> Option<NodeKind> {
        let name = &variable.name.text;
        if let Some(depth) = self.counters.iter().rposition(|counter| counter == name) {
            if variable.indices.is_some() {
                let message = format!("the counter `{name}` has no elements");
                self.diagnostics.push(Diagnostic::error(message, variable.span).label("a counter of a loop"));
                return None;
            }
            return Some(NodeKind::Counter(depth));
        }
        let indices = self.indices(&variable.indices);
        let known = self.numbers.get(name).filter(|&&number| {
            let symbol = &self.symbols[number];
            symbol.given || symbol.defined.is_some()
        });
        let Some(&array) = known else {
            if name == "pi" && variable.indices.is_none() {
                return Some(NodeKind::Number(std::f64::consts::PI));
            }
            self.undefined(variable);
            return None;
        };
        self.symbols[array].read = true;
        Some(NodeKind::Reference(Reference { array, indices: indices?, span: variable.span }))
    }

    fn undefined(&mut self, variable: &ast::Variable) {
        let name = &variable.name.text;
        if !self.undefined.insert(name.clone()) {
            return;
        }
        let known = self.symbols.iter().filter(|s| s.given || s.defined.is_some()).map(|s| s.name.as_str());
        let near = suggest::nearest(name, known.chain(self.counters.iter().map(String::as_str)));
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("give `{name}` a value in the data or with `<-`, or a distribution with `~`"),
        };
        let message = format!("`{name}` is not defined");
        self.diagnostics
            .push(Diagnostic::error(message, variable.span).label("neither in the data nor in the model").hint(hint));
    }

    fn call(&mut self, function: &ast::Name, arguments: &[Expression], span: Span) -> Option<NodeKind> {
        let resolved = self.nodes(arguments);
        let name = &function.text;
        let Some((builtin, least, most)) = names::function(name) else {
            let (message, hint) = if names::distribution(name).is_some() {
                let hint = format!("distributions come after `~`: write `x ~ {name}(…)`");
                (format!("the distribution `{name}` cannot be used as a function"), hint)
            } else if self.numbers.contains_key(name) {
                (format!("`{name}` is a variable, not a function"), format!("indices go in brackets: `{name}[…]`"))
            } else {
                (format!("there is no function `{name}`"), suggest::function_hint(name))
            };
            self.diagnostics.push(Diagnostic::error(message, function.span).label("not a function").hint(hint));
            return None;
        };
        if !(least..=most).contains(&arguments.len()) {
            let wanted = if least == most { least.to_string() } else { format!("at least {least}") };
            let noun = if wanted == "1" { "argument" } else { "arguments" };
            let message = format!(
                "{name} takes {wanted} {noun}, and {} given",
                match arguments.len() {
                    1 => "1 is".to_string(),
                    n => format!("{n} are"),
                }
            );
            self.diagnostics.push(Diagnostic::error(message, span).label("here"));
            return None;
        }
        let arguments = resolved?;
        let of_variable = matches!(builtin, names::Builtin::Length | names::Builtin::Dimension);
        if of_variable && !matches!(arguments[0].kind, NodeKind::Reference(_)) {
            let message = format!("the argument of {name} must be a variable, not an expression");
            self.diagnostics.push(Diagnostic::error(message, arguments[0].span).label("not a variable"));
            return None;
        }
        Some(NodeKind::Call { function: builtin, arguments })
    }

    /// The extents of a declaration.
    pub fn extents(&mut self, declaration: &ast::Declaration) -> Option<Vec<Node>> {
        self.nodes(&declaration.extents)
    }
}

fn elementwise(operator: Operator) -> Function {
    match operator {
        Operator::Or => Function::Or,
        Operator::And => Function::And,
        Operator::Less => Function::Less,
        Operator::LessEqual => Function::LessEqual,
        Operator::Greater => Function::Greater,
        Operator::GreaterEqual => Function::GreaterEqual,
        Operator::Equal => Function::Equal,
        Operator::NotEqual => Function::NotEqual,
        Operator::Add => Function::Add,
        Operator::Subtract => Function::Subtract,
        Operator::Divide => Function::Divide,
        Operator::Power => Function::Power,
        Operator::Multiply | Operator::MatrixMultiply => Function::Multiply,
    }
}
