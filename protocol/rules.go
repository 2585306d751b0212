package protocol

// CatalogueVersion counts the changes of the catalogue: a rule added, removed
// or given another default severity.
const CatalogueVersion = 1

// Provenance says what a rule rests on.
type Provenance string

// The provenances.
const (
	Stated   Provenance = "stated"   // the page says it
	Derived  Provenance = "derived"  // it follows from a sentence of the page, which Rule.Follows names
	Inferred Provenance = "inferred" // the page is silent, and such protocols do it
)

// Scope says how much must be seen to judge by a rule.
type Scope string

// The scopes.
const (
	ScopePacket       Scope = "packet"       // one frame or packet: Frame and Packet
	ScopeMessage      Scope = "message"      // one message: Validator
	ScopeConversation Scope = "conversation" // more than one: package conversation
	ScopeProxy        Scope = "proxy"        // what the proxy itself did
)

// Rule is one row of the catalogue.
type Rule struct {
	ID       string
	Severity Severity // by default
	// Unless says when the rule has another severity than its default, "" if
	// it never has.
	Unless     string
	Provenance Provenance
	// Section is the heading of the protocol page that it belongs to, or
	// "Transport" and "Pace", which the page does not have.
	Section string
	// Follows is what a derived rule follows from.
	Follows string
	// Title says what is wrong, in a few words.
	Title string
	// Harm is what a person sees in a chat UI because of it.
	Harm string
	// Fix is what to do about it.
	Fix   string
	Scope Scope
}

// Rules returns the whole catalogue, in the order of its page.
func Rules() []Rule {
	var all []Rule
	for _, c := range chapters {
		all = append(all, c.rules...)
	}
	return all
}

// chapters are the catalogue as its page shows it.
var chapters = []struct {
	title string
	rules []Rule
}{
	{"Frames and messages", frameRules},
	{"Commands", commandRules},
	{"Hello and versions", helloRules},
	{"Envelopes", envelopeRules},
	{"Life of a run", runRules},
	{"Decisions", decisionRules},
	{"History and rooms", roomRules},
	{"Pace", paceRules},
}

// RuleByID returns a rule of the catalogue.
func RuleByID(id string) (Rule, bool) {
	r, ok := rulesByID[id]
	return r, ok
}

var rulesByID = func() map[string]Rule {
	byID := map[string]Rule{}
	for _, r := range Rules() {
		byID[r.ID] = r
	}
	return byID
}()

// defaultSeverity returns the severity of a rule that is in the catalogue.
func defaultSeverity(id string) Severity {
	r, ok := rulesByID[id]
	if !ok {
		panic("protocol: no rule is called " + id)
	}
	return r.Severity
}
