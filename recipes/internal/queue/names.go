package queue

// SeqLimit, Parse and Prefix are for directories of other kinds, whose names are
// made as ours are: see seqLimit, parse and prefix.
const SeqLimit = seqLimit

func Parse(name string, keywords []Keyword) (Node, bool) { return parse(name, keywords) }

func Prefix(dirCzxid int64, keyword string) string { return prefix(dirCzxid, keyword) }
