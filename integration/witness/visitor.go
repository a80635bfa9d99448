package witness

import (
	"bufio"
	"fmt"
	"net"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Visitor is somebody who uses a witness, from whatever process. It is for one
// goroutine.
type Visitor struct {
	c net.Conn
	r *bufio.Reader
}

// Visit connects to the witness at addr.
func Visit(addr string) (*Visitor, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Visitor{c, bufio.NewReader(c)}, nil
}

// Enter says that the visitor holds the lock, and returns when the witness has
// noted that.
func (v *Visitor) Enter(token recipes.Token) error { return v.say(fmt.Sprintf("enter %d", token)) }

// Leave says that the visitor is about to give the lock up, and returns when the
// witness has noted that.
func (v *Visitor) Leave() error { return v.say("leave") }

// Close hangs up.
func (v *Visitor) Close() error { return v.c.Close() }

func (v *Visitor) say(words string) error {
	if _, err := fmt.Fprintln(v.c, words); err != nil {
		return err
	}
	_, err := v.r.ReadString('\n')
	return err
}
